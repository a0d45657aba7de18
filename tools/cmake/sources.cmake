# Sources are globbed: a new method, model, data source or test is a new file and nothing else.

# mneme_objects(TARGET FOLDER): an object library, so that registration lines are never dropped by the linker.
# What needs CUDA's headers is mneme_cuda()'s.
function(mneme_objects target folder)
  file(GLOB_RECURSE files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*.cpp)
  list(FILTER files EXCLUDE REGEX "/kernels/cuda/")
  add_library(${target} OBJECT ${files})
endfunction()

# mneme_program(TARGET): links everything mneme is made of.
function(mneme_program target)
  target_link_libraries(${target} PRIVATE mneme_actors mneme_strategies mneme_runtime)
  target_sources(${target} PRIVATE $<TARGET_OBJECTS:mneme_actors> $<TARGET_OBJECTS:mneme_strategies> $<TARGET_OBJECTS:mneme_runtime>)
  if(MNEME_CUDA_KERNELS AND MNEME_TORCH_CUDA)
    target_sources(${target} PRIVATE $<TARGET_OBJECTS:mneme_cuda> $<TARGET_OBJECTS:mneme_cuda_kernels>)
  endif()
endfunction()

# mneme_registered(LINE FILE...): refuses a file without its registration line, here and not in a puzzled user's hands.
# An edited file is looked at again.
function(mneme_registered line)
  foreach(file IN LISTS ARGN)
    set_property(DIRECTORY ${PROJECT_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
    file(STRINGS ${file} found REGEX "^const ${line} [a-z_]+{")
    if(NOT found)
      file(RELATIVE_PATH shown ${PROJECT_SOURCE_DIR} ${file})
      message(FATAL_ERROR "${shown} has no registration line: nobody could choose what it holds. "
                          "Its last statement should read: const ${line} line{{.name = \"...\", ...}};")
    endif()
  endforeach()
endfunction()

# mneme_check_registrations(): of every method, data source and kind of model.
function(mneme_check_registrations)
  file(GLOB_RECURSE methods CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/strategies/*.cpp)
  list(FILTER methods EXCLUDE REGEX "/strategies/shared/")
  mneme_registered(strategy_registration ${methods})
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/runtime/data/sources/*.cpp)
  mneme_registered(source_registration ${sources})
  file(GLOB models CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/runtime/models/*.cpp)
  foreach(file IN LISTS models)
    file(STRINGS ${file} kinds REGEX ": *public +model_kind")
    if(kinds)
      mneme_registered(model_registration ${file})
    endif()
  endforeach()
endfunction()
