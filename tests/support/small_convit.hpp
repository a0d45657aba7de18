/// small_convit: a small net with task tokens, and the weights of tools/research/export/official/dytox.py.
#pragma once
#include "strategies/baselines/dytox/convit.hpp"
#include "tests/support/golden.hpp"
namespace mneme::test {

/// Tasks of `sizes` classes on images of 12 x 12 pixels: nine patches; two blocks before the class-attention block.
inline convit_shape small_convit_shape(const std::vector<std::int64_t>& sizes) {
  convit_shape shape{
      .input = {3, 12, 12}, .patch = 4, .width = 8, .depth = 2, .heads = 4, .drop_path = 0.0, .divergence = true};
  for (const auto size : sizes) {
    const auto low = shape.tasks.empty() ? 0 : shape.tasks.back().high;
    shape.tasks.push_back({low, low + size});
  }
  return shape;
}
/// Net for rows of `features` pixels, each of which is a patch.
inline model_ref row_convit(const std::vector<std::int64_t>& sizes, std::int64_t features = 5) {
  auto shape = small_convit_shape(sizes);
  shape.input = {1, 1, features};
  shape.patch = shape.depth = 1;
  return std::make_shared<convit>(shape);
}

/// The script's values of a parameter; for the head, first the rows of the first task, then those of the second.
inline at::Tensor official_parameter(const parameter& entry, const std::vector<std::int64_t>& sizes) {
  const auto numbers = [](const std::string& name, std::int64_t count) {
    return at::tensor(formula("dytox." + name, count)).to(at::kDouble) * 0.5;
  };
  if (!entry.head) {
    // The script's divergence head has outputs for the second task only, which come first in our net.
    const bool is_divergence = entry.name.starts_with("divergence.linear");
    const auto count = is_divergence ? entry.size / entry.shape[0] * (sizes[1] + 1) : entry.size;
    auto values = at::zeros({entry.size}, at::kDouble);
    values.narrow(0, 0, count).copy_(numbers(entry.name, count));
    const bool is_scale = entry.name.find("norm") != std::string::npos && entry.name.ends_with(".weight");
    return (is_scale ? values + 1.0 : values).view(entry.shape);
  }
  std::vector<at::Tensor> rows;
  for (std::size_t k = 0; k < sizes.size(); ++k)
    rows.push_back(numbers(entry.name + "." + std::to_string(k), entry.size / entry.shape[0] * sizes[k]));
  return at::cat(rows).view(entry.shape);
}
/// All parameters, [P] float64.
inline at::Tensor official_weights(const model& net, const std::vector<std::int64_t>& sizes) {
  auto flat = at::zeros({net.size()}, at::kDouble);
  for (const auto& entry : net.layout())
    put_as_in_files(flat, entry, official_parameter(entry, sizes));
  return flat;
}

} // namespace mneme::test
