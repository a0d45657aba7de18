/// triangle: lower half of a symmetric matrix, stored as panels of rows in a flat tensor.
#pragma once
#include <ATen/core/Tensor.h>
namespace mneme {

// M: rows of the matrix. Panel p holds rows p b .. min((p + 1) b, M) - 1 and columns 0 to its last row, so a Gram
// matrix is summed panel by panel, each an ordinary product, with half of the work and memory. Elements above the
// diagonal within a panel are undefined.

inline constexpr std::int64_t panel_rows = 256;

/// Elements of the flat tensor.
[[nodiscard]] std::int64_t triangle_size(std::int64_t width);
/// M of a flat tensor of `size` elements. @pre it is one's triangle_size()
[[nodiscard]] std::int64_t triangle_width(std::int64_t size);

/// One panel of `flat`: a view [rows, first + rows].
struct panel {
  at::Tensor values{};
  std::int64_t first = 0; ///< Row of the matrix at which the panel starts.
};
[[nodiscard]] std::vector<panel> panels_of(const at::Tensor& flat, std::int64_t width);

/// Adds rows^T rows to the triangle. @param rows [n, M] of the same type, contiguous
void add_gram(at::Tensor& flat, const at::Tensor& rows);
/// The whole matrix, [M, M].
[[nodiscard]] at::Tensor square(const at::Tensor& flat, std::int64_t width);
/// The triangle of a symmetric matrix [M, M].
[[nodiscard]] at::Tensor triangle_of(const at::Tensor& matrix);

} // namespace mneme
