/// on_device: starts kernels on LibTorch's current stream of a device, if the program is linked with CUDA.
#pragma once
#include "runtime/base/check.hpp"
#include <c10/core/Device.h>
#include <functional>
namespace mneme::kernels::cuda {

/// True if CUDA kernels are linked. Otherwise resolve_device() offers no CUDA device, so no tensor is on such a device.
#if defined(MNEME_CUDA_LINKED)
inline constexpr bool linked = true;
#else
inline constexpr bool linked = false;
#endif

/// Runs a kernel on a device type other than CUDA. Only tests define such a type.
template <class Launch>
using kernel_runner = std::function<void(const Launch&)>;
template <class Launch>
inline kernel_runner<Launch> fake_device_runner = nullptr;
inline const char* fake_device_name = "";

/// Makes the device current for the calling thread, which avoids a warning of cuBLAS.
#if defined(MNEME_CUDA_LINKED)
void make_current(const c10::Device& device);
#else
inline void make_current(const c10::Device&) {}
#endif

/// start_on() for CUDA devices.
template <class Launch>
void start_on_cuda(const c10::Device& device, const Launch& launch);

/// Starts the kernel of `Launch`, a struct of launches.hpp, and returns immediately. Throws c10::Error if CUDA reports
/// an error. @pre its pointers refer to memory of `device` that is freed only on the current stream
template <class Launch>
void start_on(const c10::Device& device, const Launch& launch) {
  if (fake_device_runner<Launch> && !device.is_cuda())
    return fake_device_runner<Launch>(launch);
  MNEME_CHECK(linked, device.str());
  if constexpr (linked)
    start_on_cuda(device, launch);
}

} // namespace mneme::kernels::cuda
