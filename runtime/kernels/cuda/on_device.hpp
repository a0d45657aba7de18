/// on_device: starts kernels on LibTorch's current stream of a device, where the program is linked with them.
#pragma once
#include "runtime/base/check.hpp"
#include <c10/core/Device.h>
namespace mneme::kernels::cuda {

/// A program without the kernels finds no CUDA device, and so has no tensor on one: see resolve_device().
#if defined(MNEME_CUDA_LINKED)
inline constexpr bool linked = true;
#else
inline constexpr bool linked = false;
#endif

/// What runs a kernel on a device that is none of CUDA's, and the name of that device. Only tests have one.
template <class Launch>
inline void (*stand_in)(const Launch&) = nullptr;
inline const char* stand_in_name = "";

/// Makes the device the calling thread's, which cuBLAS warns of where nothing else has done so.
#if defined(MNEME_CUDA_LINKED)
void make_current(const c10::Device& device);
#else
inline void make_current(const c10::Device&) {}
#endif

/// start_on() where `device` is one of CUDA's.
template <class Launch>
void start_on_cuda(const c10::Device& device, const Launch& launch);

/// Starts the kernel of `Launch`, a struct of launches.hpp, and returns at once. Throws c10::Error where CUDA refuses.
/// @pre what it points to is memory of `device`, and is freed, if at all, on its current stream
template <class Launch>
void start_on(const c10::Device& device, const Launch& launch) {
  if (stand_in<Launch> && !device.is_cuda())
    return stand_in<Launch>(launch);
  MNEME_CHECK(linked, device.str());
  if constexpr (linked)
    start_on_cuda(device, launch);
}

} // namespace mneme::kernels::cuda
