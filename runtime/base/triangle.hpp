/// triangle: lower triangle of a symmetric matrix, stored as panels of rows in a flat tensor.
#pragma once
#include <ATen/core/Tensor.h>
namespace mneme {

// The matrix has M rows, a panel b rows. Panel p holds the rows p b to min((p + 1) b, M) - 1 and the columns up to its
// last row. A Gram matrix is summed panel by panel with ordinary products, at half the work and memory. Elements of a
// panel above the diagonal are undefined.

inline constexpr std::int64_t panel_rows = 256;

/// Number of elements of the flat tensor.
[[nodiscard]] std::int64_t triangle_size(std::int64_t width);
/// The inverse of triangle_size(): M for a flat tensor of `size` elements.
[[nodiscard]] std::int64_t triangle_width(std::int64_t size);

/// One panel of a flat tensor, as a view [rows, first + rows].
struct panel {
  at::Tensor values{};
  std::int64_t first = 0; ///< Index of the panel's first row in the matrix.
};
/// The panels of a flat tensor, in row order. @pre flat has triangle_size(width) elements
[[nodiscard]] std::vector<panel> panels_of(const at::Tensor& flat, std::int64_t width);

/// Adds rows^T rows to the triangle. @param rows [n, M], contiguous, of the same dtype
void add_gram(at::Tensor& flat, const at::Tensor& rows);
/// Expands to the full matrix [M, M].
[[nodiscard]] at::Tensor square(const at::Tensor& flat, std::int64_t width);
/// Packs a symmetric matrix [M, M].
[[nodiscard]] at::Tensor triangle_of(const at::Tensor& matrix);

} // namespace mneme
