/// gather_calls: a data set and a batch's rows as the kernel that gathers on a device reads them.
#pragma once
#include "runtime/kernels/cuda/gather_pixels.hpp"
#include "runtime/training/gather.hpp"
namespace mneme {

// Shapes: N rows of a file, T transforms, C channels, B rows of a batch.

/// All of a data set but its labels, on one device.
struct gather_tables {
  at::Tensor images{};     ///< [N, C, H, W] uint8
  at::Tensor transforms{}; ///< [T * sizeof(tap_table)] bytes
  at::Tensor taps{};       ///< [taps * sizeof(pixel_taps)] bytes
  at::Tensor scales{};     ///< [2, C] float32: scale, shift
};
[[nodiscard]] gather_tables tables_on(const at::Device& device, const dataset& source);

/// The batch's rows as bytes of the host: [B * sizeof(gather_row)].
/// @param pinned in memory that a device copies from while the host goes on
[[nodiscard]] at::Tensor packed_rows(const dataset& source, std::span<const std::int64_t> rows,
                                     std::span<const augmentation> augment, bool pinned);

/// The launch that writes out [B, C, H, W] float32. @param rows packed, on the device of all others
[[nodiscard]] kernels::cuda::gathered_rows gather_call(const dataset& source, const gather_tables& tables,
                                                       const at::Tensor& rows, at::Tensor& out);

} // namespace mneme
