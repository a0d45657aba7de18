/// on_device: starts kernels on LibTorch's current stream of a device, where the program is linked with them.
#pragma once
#include "runtime/base/check.hpp"
#include <c10/core/Device.h>
namespace mneme::kernels::cuda {

/// Starts the kernel of `What`, a struct of launches.hpp, and returns at once. Throws c10::Error where CUDA refuses.
/// @pre what it points to is memory of `device`, and is freed, if at all, on its current stream
template <class Launch>
void start_on(const c10::Device& device, const Launch& launch);

/// A program without the kernels finds no device, and so has no tensor on one: see resolve_device().
#if defined(MNEME_CUDA_LINKED)
inline constexpr bool linked = true;
#else
inline constexpr bool linked = false;
template <class Launch>
void start_on(const c10::Device& device, const Launch&) {
  MNEME_CHECK(linked, device.str());
}
#endif

} // namespace mneme::kernels::cuda
