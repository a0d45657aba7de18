# Sources are globbed: a new method, model, data source or test is a new file and nothing else.

# mneme_objects(TARGET FOLDER): an object library, so that registration lines are never dropped by the linker.
function(mneme_objects target folder)
  file(GLOB_RECURSE files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*.cpp)
  add_library(${target} OBJECT ${files})
endfunction()

# mneme_program(TARGET): links everything mneme is made of.
function(mneme_program target)
  target_link_libraries(${target} PRIVATE mneme_actors mneme_strategies mneme_runtime)
  target_sources(${target} PRIVATE $<TARGET_OBJECTS:mneme_actors> $<TARGET_OBJECTS:mneme_strategies> $<TARGET_OBJECTS:mneme_runtime>)
endfunction()
