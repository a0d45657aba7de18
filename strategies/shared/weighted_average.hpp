/// weighted_average: the running mean of uploads, in float64.
#pragma once
#include <ATen/core/Tensor.h>
namespace mneme {

/// Sums as it goes, so memory does not grow with the cohort. Order of add() decides the last bits:
/// call it in delivery order.
class weighted_average {
public:
  /// @param value [P] float32 @param weight > 0
  void add(const at::Tensor& value, double weight);
  [[nodiscard]] bool empty() const noexcept { return weight_ == 0.0; }
  /// The mean as float32 [P]; forgets everything. @pre not empty()
  [[nodiscard]] at::Tensor take();

private:
  at::Tensor sum_{}; // [P] float64
  double weight_ = 0.0;
};

} // namespace mneme
