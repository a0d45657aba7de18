/// on_device: starts kernels on LibTorch's current stream of a device, where the program is linked with them.
#pragma once
#include <c10/core/Device.h>
namespace mneme::kernels::cuda {

/// Whether this program holds the kernels. Where it does not, start_on() may be named in a discarded branch only.
#if defined(MNEME_CUDA_LINKED)
inline constexpr bool linked = true;
#else
inline constexpr bool linked = false;
#endif
[[nodiscard]] inline bool run_on(const c10::Device& device) { return linked && device.is_cuda(); }

/// Starts the kernel of `What`, a struct of launches.hpp, and returns at once. Throws c10::Error where CUDA refuses.
/// @pre what it points to is memory of `device`, and is freed, if at all, on its current stream
template <class What>
void start_on(const c10::Device& device, const What& what);

} // namespace mneme::kernels::cuda
