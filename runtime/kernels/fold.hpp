/// fold: adds weighted uploads to float64 sums, several uploads per pass over the sums.
#pragma once
#include <cstdint>
#include <span>
namespace mneme::kernels {

/// An upload and its weight in a sum.
struct weighted_upload {
  const float* values = nullptr; ///< [n]
  double weight = 0.0;
};
inline constexpr std::size_t folded_at_once_max = 4;

/// sum[i] = (...((sum[i] + w_0 v_0[i]) + w_1 v_1[i]) ...), with the same bits as folding the uploads one by one. The
/// product of a float32 and an integer weight below 2^29 is exact, so the bits are the same on every instruction set.
/// @pre uploads.size() <= folded_at_once_max
void fold(double* sum, std::span<const weighted_upload> uploads, std::int64_t n);

} // namespace mneme::kernels
