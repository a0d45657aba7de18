#include "runtime/base/triangle.hpp"
#include "runtime/base/check.hpp"
#include <algorithm>
#include <cmath>
namespace mneme {

std::int64_t triangle_size(std::int64_t width) {
  std::int64_t size = 0;
  for (std::int64_t first = 0; first < width; first += panel_rows) {
    const auto rows = std::min(panel_rows, width - first);
    size += rows * (first + rows);
  }
  return size;
}

std::int64_t triangle_width(std::int64_t size) {
  auto width = static_cast<std::int64_t>(std::sqrt(static_cast<double>(size)));
  while (triangle_size(width) < size)
    ++width;
  while (width > 0 && triangle_size(width) > size)
    --width;
  MNEME_CHECK(triangle_size(width) == size, size, width);
  return width;
}

std::vector<panel> panels_of(const at::Tensor& flat, std::int64_t width) {
  MNEME_CHECK(flat.numel() == triangle_size(width), flat.numel(), width);
  std::vector<panel> panels;
  std::int64_t offset = 0;
  for (std::int64_t first = 0; first < width; first += panel_rows) {
    const auto rows = std::min(panel_rows, width - first), columns = first + rows;
    panels.push_back({flat.narrow(0, offset, rows * columns).view({rows, columns}), first});
    offset += rows * columns;
  }
  return panels;
}

void add_gram(at::Tensor& flat, const at::Tensor& rows) {
  for (auto& panel : panels_of(flat, rows.size(1)))
    panel.values.addmm_(rows.narrow(1, panel.first, panel.values.size(0)).t(), rows.narrow(1, 0, panel.values.size(1)));
}

at::Tensor square(const at::Tensor& flat, std::int64_t width) {
  auto full = flat.new_empty({width, width});
  for (const auto& panel : panels_of(flat, width)) {
    const auto rows = panel.values.size(0), columns = panel.values.size(1);
    full.narrow(0, panel.first, rows).narrow(1, 0, columns).copy_(panel.values);
    full.narrow(1, panel.first, rows).narrow(0, 0, panel.first).copy_(panel.values.narrow(1, 0, panel.first).t());
    auto corner = full.narrow(0, panel.first, rows).narrow(1, panel.first, rows);
    corner.copy_(corner.tril().add(corner.tril(-1).t()));
  }
  return full;
}

at::Tensor triangle_of(const at::Tensor& matrix) {
  const auto width = matrix.size(0);
  auto flat = matrix.new_empty({triangle_size(width)});
  for (auto& panel : panels_of(flat, width))
    panel.values.copy_(matrix.narrow(0, panel.first, panel.values.size(0)).narrow(1, 0, panel.values.size(1)));
  return flat;
}

} // namespace mneme
