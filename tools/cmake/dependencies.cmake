# Third-party libraries as imported targets. tools/bootstrap installs them and prints their folders.
set(MNEME_CAF "" CACHE PATH "Prefix of CAF 0.18.7")
set(MNEME_TORCH "" CACHE PATH "Folder that holds torch/ (a site-packages), or torch's own folder")
set(MNEME_CATCH2 "" CACHE PATH "Prefix of Catch2 3")
list(APPEND CMAKE_PREFIX_PATH ${MNEME_CAF} ${MNEME_CATCH2} ${MNEME_CATCH2}/usr)

find_package(Threads REQUIRED)
find_package(CAF 0.18.7 REQUIRED COMPONENTS core)
find_package(Catch2 3 REQUIRED)
find_package(Eigen3 3.4 REQUIRED NO_MODULE)
find_package(nlohmann_json REQUIRED)
find_package(ZLIB REQUIRED)
find_package(LibLZMA REQUIRED)
find_package(JPEG REQUIRED)
find_package(PNG REQUIRED)
if(MNEME_DIFFUSION)
  find_package(ICU REQUIRED COMPONENTS uc)
endif()
if(MNEME_NODES)
  find_package(OpenSSL 3 REQUIRED COMPONENTS SSL Crypto)
endif()
find_package(SQLite3 REQUIRED)
find_package(mimalloc 2 QUIET) # Debian 13 has version 3, whose CMake package does not accept a request for version 2
if(NOT mimalloc_FOUND)
  find_package(mimalloc 3 REQUIRED)
endif()
find_path(TOMLPLUSPLUS_INCLUDE toml++/toml.h REQUIRED)
find_path(CLI11_INCLUDE CLI/CLI.hpp REQUIRED)
find_path(EXPECTED_INCLUDE tl/expected.hpp REQUIRED)
if(MNEME_LIVE)
  find_path(MICROHTTPD_INCLUDE microhttpd.h REQUIRED)
  find_library(MICROHTTPD_LIBRARY microhttpd REQUIRED)
endif()
find_path(XXHASH_INCLUDE xxhash.h REQUIRED)
find_library(XXHASH_LIBRARY xxhash REQUIRED)
foreach(target IN ITEMS CAF::core)
  get_target_property(directories ${target} INTERFACE_INCLUDE_DIRECTORIES)
  set_target_properties(${target} PROPERTIES INTERFACE_SYSTEM_INCLUDE_DIRECTORIES "${directories}")
endforeach()

# LibTorch without the wheel's TorchConfig.cmake, which requires a CUDA toolkit.
find_path(TORCH_HOME include/ATen/ATen.h HINTS ${MNEME_TORCH}/torch ${MNEME_TORCH} REQUIRED NO_DEFAULT_PATH)
get_filename_component(torch_site ${TORCH_HOME} DIRECTORY)
add_library(mneme_torch INTERFACE)
target_include_directories(mneme_torch SYSTEM INTERFACE ${TORCH_HOME}/include ${TORCH_HOME}/include/torch/csrc/api/include)
target_link_libraries(mneme_torch INTERFACE ${TORCH_HOME}/lib/libtorch_cpu.so ${TORCH_HOME}/lib/libc10.so)
set(CMAKE_BUILD_RPATH ${TORCH_HOME}/lib ${torch_site}/nvidia/cu13/lib) # for programs in the build folder
target_link_options(mneme_torch INTERFACE -Wl,-rpath-link,${torch_site}/nvidia/cu13/lib)
include(cuda)
if(MNEME_TORCH_CUDA)
  target_link_libraries(mneme_torch INTERFACE -Wl,--no-as-needed ${TORCH_HOME}/lib/libtorch_cuda.so
                        ${TORCH_HOME}/lib/libc10_cuda.so -Wl,--as-needed)
endif()

add_library(mneme_fmt STATIC ${CMAKE_CURRENT_LIST_DIR}/fmt.cpp)
target_link_libraries(mneme_fmt PUBLIC mneme_torch)
target_compile_options(mneme_fmt PRIVATE $<$<CONFIG:Release>:-O1>)

# Options of all targets. Other libraries are linked to the layers that use them, in layers.cmake.
add_library(mneme_numbers INTERFACE)
target_include_directories(mneme_numbers INTERFACE ${PROJECT_SOURCE_DIR})
target_include_directories(mneme_numbers SYSTEM INTERFACE ${EXPECTED_INCLUDE} ${XXHASH_INCLUDE})
target_link_libraries(mneme_numbers INTERFACE mneme_torch mneme_fmt ${XXHASH_LIBRARY} Threads::Threads)
target_compile_options(mneme_numbers INTERFACE -Wall -Wextra -Wno-missing-field-initializers
                       $<$<BOOL:${MNEME_WERROR}>:-Werror$<SEMICOLON>-Wno-error=maybe-uninitialized>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # g++ 12 wrongly reports an overflow where a literal is inserted before a moved string (GCC bug 105651).
  target_compile_options(mneme_numbers INTERFACE -Wno-array-bounds -Wno-restrict -Wno-stringop-overflow)
endif()
if(MNEME_SANITIZE)
  # A null pointer crashes without a check, and type checks of LibTorch's objects would triple the compile time. Checks
  # of alignment and object sizes take a third of g++'s time; clang's sanitizers for tools/fuzz include them.
  target_compile_options(mneme_numbers INTERFACE -fsanitize=${MNEME_SANITIZE} -fno-sanitize=null,vptr
                         $<$<CXX_COMPILER_ID:GNU>:-fno-sanitize=alignment,object-size> -fno-omit-frame-pointer)
  target_link_options(mneme_numbers INTERFACE -fsanitize=${MNEME_SANITIZE})
endif()

find_program(CCACHE ccache)
if(CCACHE)
  # Clones and worktrees on one machine share compiled objects and precompiled headers. ccache relies on the
  # dependencies that the compiler reports, so that the preprocessor does not run twice.
  set(CMAKE_CXX_COMPILER_LAUNCHER env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_SLOPPINESS=pch_defines,time_macros
      CCACHE_PCH_EXTSUM=true CCACHE_DEPEND=true ${CCACHE})
  add_compile_options($<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fpch-preprocess>)
endif()
include(linker)

add_library(mneme_command_line INTERFACE)
target_include_directories(mneme_command_line SYSTEM INTERFACE ${CLI11_INCLUDE})

# Versions of compiler and third-party headers as one line.
execute_process(COMMAND ${CMAKE_CXX_COMPILER} --version OUTPUT_VARIABLE compiler)
foreach(file IN ITEMS ${TORCH_HOME}/version.py ${EXPECTED_INCLUDE}/tl/expected.hpp)
  file(MD5 ${file} digest)
  list(APPEND mneme_versions ${digest})
endforeach()
string(MD5 mneme_versions "${compiler} ${mneme_versions} ${CAF_VERSION} ${Catch2_VERSION}")
