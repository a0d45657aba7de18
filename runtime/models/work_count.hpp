/// work_count: how many floating-point operations a net takes per row, counted from the operators that define it.
#pragma once
#include "runtime/models/model.hpp"
#include <map>
namespace mneme {

/// The name under which stacked_product() shows itself to LibTorch's observers: it multiplies matrices that it has
/// filled up with zeros, and what counts are those it was given.
inline constexpr const char* stacked_product_name = "mneme::stacked_product";

/// A product of matrices [m, k] and [k, n].
struct product_shape {
  std::int64_t m = 0, k = 0, n = 0;
  auto operator<=>(const product_shape&) const = default;
};

/// Products and convolutions, two operations for each multiplication and its addition. What works element by element is
/// not counted.
struct pass_work {
  double forward = 0.0;
  /// A backward pass takes as much as forward for each operand of a product that a gradient is wanted of.
  double backward = 0.0;
  std::map<product_shape, double> forward_by_shape{};
};

/// What `rows` rows take, by one run of model::differentiable() on rows of zeros in evaluation mode. Where its
/// operators take no gradient of all that the net holds, backward is twice forward.
/// @param shape C, H, W of a row
/// @param classes those of which logits are wanted; empty: the pass ends at the features
[[nodiscard]] pass_work work_of_pass(const model& net, std::array<std::int64_t, 3> shape, std::int64_t rows,
                                     class_range classes);

} // namespace mneme
