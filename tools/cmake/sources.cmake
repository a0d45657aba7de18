# Sources are globbed: a new method, model, data source or test is a new file and nothing else.

# layer(FOLDER DEPENDENCY...): the sources of a folder as an object library, so that registration lines are never dropped
# by the linker. Dependencies are layers declared before. What needs CUDA's headers is mneme_cuda()'s.
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
  elseif(NOT name STREQUAL "kernels") # which knows nothing of LibTorch
    mneme_precompile(mneme_${name} tensors)
  endif()
  if(NOT name STREQUAL "kernels") # whose sources have options of their own and hardly a header in common
    mneme_unity(mneme_${name})
  endif()
  list(REMOVE_DUPLICATES reach)
  set_property(GLOBAL PROPERTY mneme_reach_${name} ${reach})
  set_property(GLOBAL APPEND PROPERTY mneme_layers ${folder})
endfunction()

# optional_layer(SWITCH FOLDER DEPENDENCY...): a layer that a build leaves out if the switch is off. No other layer
# includes it: it registers itself at a door below (runtime/base/arithmetic.hpp), and programs link ${optional_layers}.
macro(optional_layer switch folder)
  if(${switch})
    layer(${folder} ${ARGN})
    get_filename_component(optional_name ${folder} NAME)
    list(APPEND optional_layers ${optional_name})
  endif()
endmacro()

# mneme_unity(TARGET): neighbouring sources are compiled as one, which takes less than half the CPU seconds. So what they
# keep to themselves has a name of its own in its layer (mneme_registered says what of methods). Who changes one file many
# times waits less with fewer together.
set(MNEME_TOGETHER 16 CACHE STRING "How many sources of a layer are compiled as one")
function(mneme_unity target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${MNEME_TOGETHER})
  # g++ takes what a source keeps to itself for a header's where the source is included.
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
endfunction()

# mneme_links(PROGRAM LAYER...): links the layers and all that their lines lead to. CMake links the objects of a library
# only where it is named itself, so all of them are.
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

# mneme_registered(LINE FILE...): refuses a file without its registration line, here and not in a puzzled user's hands.
# An edited file is looked at again. `const strategy_registration line{` in namespace mneme keeps a file for itself, since
# such names would meet in a unity build; a file that has a namespace of its own (`namespace mneme::moon_method {`), or
# another name for its line and for whatever else it holds, joins in.
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

# mneme_check_awaits(FILE...): refuses an await inside of a longer expression, whose aggregates g++ 12 destroys twice. No
# type can refuse it: `f({.size = 1}, co_await name)` awaits a name, too.
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

# mneme_check_registrations(): of every method, data source and kind of model. A source below strategies/ is a method, in
# whatever folder, unless its first line includes a header from beside it: then it is a part of one.
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
