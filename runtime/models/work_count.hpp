/// work_count: floating-point operations of a net per row, counted from the operators that it calls.
#pragma once
#include "runtime/models/model.hpp"
#include <map>
namespace mneme {

/// Name of stacked_product() for LibTorch's observers. Its operands are counted at their given sizes, without the zero
/// padding of the product that it computes.
inline constexpr const char* stacked_product_name = "mneme::stacked_product";

/// Product of matrices [m, k] and [k, n].
struct product_shape {
  std::int64_t m = 0, k = 0, n = 0;
  auto operator<=>(const product_shape&) const = default;
};

/// Floating-point operations of products and convolutions, two per multiply-add. Elementwise operators do not count.
struct pass_work {
  double forward = 0.0;
  /// For each operand that needs a gradient, a backward pass has as many operations as the forward product.
  double backward = 0.0;
  std::map<product_shape, double> forward_by_shape{};
};

/// Counts the operations of `rows` rows in one call of model::differentiable() on rows of zeros in evaluation mode. If
/// an operator does not support gradients of all weights, `backward` is twice `forward`.
/// @param shape C, H, W of a row
/// @param classes classes whose logits are computed; empty: the pass ends at the features
[[nodiscard]] pass_work work_of_pass(const model& net, std::array<std::int64_t, 3> shape, std::int64_t rows,
                                     class_range classes);

} // namespace mneme
