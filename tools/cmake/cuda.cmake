# CUDA: LibTorch's CUDA libraries and mneme's kernels. A program is linked with both, or runs on CPUs only.
set(MNEME_CUDA AUTO CACHE STRING "CUDA: AUTO (what is there), ON (kernels are compiled, or configuring fails), OFF (none)")
set_property(CACHE MNEME_CUDA PROPERTY STRINGS AUTO ON OFF)

# MNEME_TORCH_CUDA: true if programs are linked with LibTorch's CUDA libraries. A CPU installation of the wheel has
# these libraries without their dependencies, so CMake also searches for the last dependency.
set(MNEME_TORCH_CUDA OFF)
file(GLOB cudnn ${TORCH_HOME}/lib/libcudnn.so* ${torch_site}/nvidia/cudnn/lib/libcudnn.so*)
if(NOT MNEME_CUDA STREQUAL OFF AND EXISTS ${TORCH_HOME}/lib/libtorch_cuda.so AND cudnn)
  set(MNEME_TORCH_CUDA ON)
endif()

# MNEME_CUDA_KERNELS: true if mneme's kernels are compiled. Programs contain them only if MNEME_TORCH_CUDA is also true.
# CMake 3.25 supports neither CUDA20 nor the architectures of nvcc 13, so both are set by flags. Devices need compute
# capability 8.0 or higher.
set(MNEME_CUDA_KERNELS OFF)
if(MNEME_CUDA STREQUAL ON OR (MNEME_CUDA STREQUAL AUTO AND MNEME_TORCH_CUDA))
  find_program(CMAKE_CUDA_COMPILER nvcc HINTS /usr/local/cuda/bin)
  if(CMAKE_CUDA_COMPILER)
    set(MNEME_CUDA_KERNELS ON)
  elseif(MNEME_CUDA STREQUAL ON)
    message(FATAL_ERROR "MNEME_CUDA is ON, but there is no nvcc. Set CMAKE_CUDA_COMPILER to it, or MNEME_CUDA to AUTO.")
  else()
    set(MNEME_TORCH_CUDA OFF)
    message(STATUS "No nvcc: programs run on CPUs only")
  endif()
endif()
if(MNEME_CUDA_KERNELS)
  set(CMAKE_CUDA_ARCHITECTURES 80-real 90 CACHE STRING "Architectures of our CUDA kernels")
  set(CMAKE_CUDA_RUNTIME_LIBRARY Shared) # the runtime that LibTorch uses, since a program can have only one
  enable_language(CUDA)
  # Only .cu files, which do not include LibTorch.
  file(GLOB_RECURSE kernels CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/runtime/*.cu)
  add_library(mneme_cuda_kernels OBJECT ${kernels})
  set_target_properties(mneme_cuda_kernels PROPERTIES CUDA_STANDARD 17 CUDA_STANDARD_REQUIRED ON CUDA_EXTENSIONS OFF)
  target_include_directories(mneme_cuda_kernels PRIVATE ${PROJECT_SOURCE_DIR})
  target_compile_options(mneme_cuda_kernels PRIVATE -Xcompiler=-Wall,-Wextra,-Wno-missing-field-initializers
                         $<$<BOOL:${MNEME_WERROR}>:-Werror=all-warnings>)
endif()

# mneme_cuda(): compiles the code that starts kernels on LibTorch's streams, and defines the macro that its callers
# test. If LibTorch's CUDA libraries are missing, the target mneme_cuda compiles both, but no program is linked with it.
function(mneme_cuda)
  if(NOT MNEME_CUDA_KERNELS)
    return()
  endif()
  file(GLOB files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/runtime/kernels/cuda/*.cpp)
  add_library(mneme_cuda OBJECT ${files})
  add_dependencies(mneme_cuda mneme_cuda_kernels)
  target_link_libraries(mneme_cuda PRIVATE mneme_numbers)
  target_include_directories(mneme_cuda SYSTEM PRIVATE ${CMAKE_CUDA_TOOLKIT_INCLUDE_DIRECTORIES})
  target_compile_definitions(mneme_cuda PRIVATE MNEME_CUDA_LINKED)
  if(MNEME_TORCH_CUDA)
    target_compile_definitions(mneme_numbers INTERFACE MNEME_CUDA_LINKED)
  else()
    set_target_properties(mneme_cuda mneme_cuda_kernels PROPERTIES EXCLUDE_FROM_ALL ON)
    message(STATUS "LibTorch has no CUDA libraries here: our kernels are compiled (target mneme_cuda), not linked")
  endif()
endfunction()
