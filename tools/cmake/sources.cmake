# Sources are globbed, so that a new method, model, data source or test needs only a new file.

# layer(FOLDER DEPENDENCY...): compiles the sources of a folder as an object library, so that the linker never drops
# registration lines. Dependencies must be declared before. Sources that need CUDA's headers belong to mneme_cuda().
function(layer folder)
  get_filename_component(name ${folder} NAME)
  file(GLOB_RECURSE files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*.cpp)
  if(NOT folder MATCHES "/diffusion$") # a layer within the folder of another one
    list(FILTER files EXCLUDE REGEX "/(kernels/cuda|osi_fl/diffusion)/")
  endif()
  add_library(mneme_${name} OBJECT ${files})
  target_link_libraries(mneme_${name} PUBLIC mneme_numbers)
  set(reach ${name})
  foreach(dependency IN LISTS ARGN)
    if(NOT TARGET mneme_${dependency})
      message(FATAL_ERROR "layers.cmake: ${folder} names ${dependency}, which no line above it declares")
    endif()
    target_link_libraries(mneme_${name} PUBLIC mneme_${dependency})
    get_property(below GLOBAL PROPERTY mneme_reach_${dependency})
    list(APPEND reach ${below})
  endforeach()
  if(folder MATCHES "^actors/")
    mneme_precompile(mneme_${name} actors)
  elseif(name MATCHES "^(method|models|modules|training|strategies|diffusion)$")
    mneme_precompile(mneme_${name} operators)
  elseif(NOT name STREQUAL "kernels") # kernels do not include LibTorch
    mneme_precompile(mneme_${name} tensors)
  endif()
  if(NOT name STREQUAL "kernels") # the sources of kernels have their own options and share few headers
    mneme_unity(mneme_${name})
  endif()
  list(REMOVE_DUPLICATES reach)
  set_property(GLOBAL PROPERTY mneme_reach_${name} ${reach})
  set_property(GLOBAL APPEND PROPERTY mneme_layers ${folder})
endfunction()

# optional_layer(SWITCH FOLDER DEPENDENCY...): a layer that is built only if the switch is on. No other layer includes
# it. It registers itself at an interface of a lower layer (runtime/base/arithmetic.hpp), and programs link
# ${optional_layers}.
macro(optional_layer switch folder)
  if(${switch})
    layer(${folder} ${ARGN})
    get_filename_component(optional_name ${folder} NAME)
    list(APPEND optional_layers ${optional_name})
  endif()
endmacro()

# mneme_unity(TARGET): compiles several sources as one, which takes less than half the CPU time. Names with internal
# linkage must therefore be unique in a layer (for methods see mneme_registered). A lower MNEME_TOGETHER shortens
# rebuilds after edits of one file.
set(MNEME_TOGETHER 16 CACHE STRING "How many sources of a layer are compiled as one")
function(mneme_unity target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${MNEME_TOGETHER})
  # g++ warns of internal linkage in included sources as if they were headers.
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
endfunction()

# mneme_links(PROGRAM LAYER...): links the layers and all their dependencies. CMake links the objects of an object
# library only if it is named directly, so all of them are named.
function(mneme_links program)
  foreach(name IN LISTS ARGN)
    get_property(below GLOBAL PROPERTY mneme_reach_${name})
    list(APPEND reach ${below})
  endforeach()
  list(REMOVE_DUPLICATES reach)
  list(TRANSFORM reach PREPEND mneme_ OUTPUT_VARIABLE libraries)
  target_link_libraries(${program} PRIVATE ${libraries})
  if("kernels" IN_LIST reach AND MNEME_CUDA_KERNELS AND MNEME_TORCH_CUDA)
    target_sources(${program} PRIVATE $<TARGET_OBJECTS:mneme_cuda> $<TARGET_OBJECTS:mneme_cuda_kernels>)
  endif()
endfunction()

# mneme_registered(LINE FILE...): fails if a file has no registration line. It is checked again when the file is edited.
# A file with `const strategy_registration line{` in namespace mneme is compiled separately, since such names would
# clash in a unity build. A file with its own namespace (`namespace mneme::moon_method {`), or with unique names, joins
# the unity build.
function(mneme_registered line)
  foreach(file IN LISTS ARGN)
    set_property(DIRECTORY ${PROJECT_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
    file(STRINGS ${file} statement REGEX "^const ${line} [a-z0-9_]+{")
    file(STRINGS ${file} own_namespace REGEX "^namespace mneme::[a-z0-9_]+ {" LIMIT_COUNT 1)
    if(statement MATCHES " line{" AND NOT own_namespace)
      set_property(SOURCE ${file} PROPERTY SKIP_UNITY_BUILD_INCLUSION ON)
    elseif(NOT statement)
      file(RELATIVE_PATH shown ${PROJECT_SOURCE_DIR} ${file})
      message(FATAL_ERROR "${shown} has no registration line: nobody could choose what it holds. "
                          "Its last statement should read: const ${line} line{{.name = \"...\", ...}};")
    endif()
  endforeach()
endfunction()

# mneme_check_awaits(FILE...): fails if a co_await is part of a longer expression, because g++ 12 destroys its
# aggregates twice. Types cannot prevent this: in `f({.size = 1}, co_await name)` the operand is a name, too.
function(mneme_check_awaits)
  set(alone "^ *((const )?auto&?&? ([A-Za-z_0-9]+|\\[[^]]*\\]) = |[A-Za-z_0-9]+ = )?co_await [A-Za-z_0-9]+;")
  foreach(file IN LISTS ARGN)
    file(STRINGS ${file} awaits REGEX "^([^/\"]|/[^/])*co_await ")
    foreach(line IN LISTS awaits)
      if(NOT line MATCHES "${alone}")
        file(RELATIVE_PATH shown ${PROJECT_SOURCE_DIR} ${file})
        string(STRIP "${line}" line)
        message(FATAL_ERROR "${shown}: an await stands alone on its line, and awaits a name; g++ 12 destroys what else its "
                            "expression holds twice. Write `auto trained = co_await training;` in place of: ${line}")
      endif()
    endforeach()
  endforeach()
endfunction()

# mneme_check_registrations(): checks all methods, data sources and kinds of models. A source in strategies/ is a
# method, unless its first line includes a header of its own folder; then it is a part of a method.
function(mneme_check_registrations)
  file(GLOB_RECURSE candidates CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/strategies/*.cpp)
  list(FILTER candidates EXCLUDE REGEX "/osi_fl/diffusion/")
  set(methods)
  foreach(file IN LISTS candidates)
    cmake_path(GET file PARENT_PATH folder)
    file(RELATIVE_PATH folder ${PROJECT_SOURCE_DIR} ${folder})
    file(STRINGS ${file} first_line LIMIT_COUNT 1)
    if(NOT first_line MATCHES "^#include \"${folder}/[a-z0-9_]+\\.hpp\"")
      list(APPEND methods ${file})
    endif()
  endforeach()
  mneme_registered(strategy_registration ${methods})
  mneme_check_awaits(${methods})
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
