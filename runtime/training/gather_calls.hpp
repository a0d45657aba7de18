/// gather_calls: arguments of the device kernel that gathers a batch's rows from a data set.
#pragma once
#include "runtime/kernels/cuda/gather_pixels.hpp"
#include "runtime/training/gather.hpp"
namespace mneme {

// Shapes: N rows of a file, T transforms, C channels, B rows of a batch.

/// A data set without its labels, on one device.
struct gather_tables {
  at::Tensor images{};     ///< [N, C, H, W] uint8
  at::Tensor transforms{}; ///< [T * sizeof(tap_table)] bytes
  at::Tensor taps{};       ///< [taps * sizeof(pixel_taps)] bytes
  at::Tensor scales{};     ///< [2, C] float32: scale and shift of each channel
};
/// Copies a data set of images to a device.
[[nodiscard]] gather_tables tables_on(const at::Device& device, const dataset& source);

/// The batch's rows as bytes on the host, [B * sizeof(gather_row)].
/// @param pinned true: in pinned memory, for asynchronous copies to a device
[[nodiscard]] at::Tensor packed_rows(const dataset& source, std::span<const std::int64_t> rows,
                                     std::span<const augmentation> augment, bool pinned);

/// Arguments of the kernel that writes out [B, C, H, W] float32. @param rows packed_rows() on the device of `tables`
[[nodiscard]] kernels::cuda::gathered_rows gather_call(const dataset& source, const gather_tables& tables,
                                                       const at::Tensor& rows, at::Tensor& out);

} // namespace mneme
