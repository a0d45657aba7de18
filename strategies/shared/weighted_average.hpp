/// weighted_average: the running mean of uploads, in float64.
#pragma once
#include "runtime/training/folding.hpp"
#include <vector>
namespace mneme {

class archive;

/// Sums as it goes, so memory does not grow with the cohort. Order of add() decides the last bits:
/// call it in delivery order.
class weighted_average {
public:
  /// A few values wait to be summed in one pass, so what is given is frozen, as tensors of a tensor_map are.
  /// @param value [P] float32, contiguous @param weight > 0
  void add(const at::Tensor& value, double weight);
  [[nodiscard]] bool empty() const noexcept { return weight_ == 0.0; }
  /// The mean as float32 [P]; forgets everything. @pre not empty()
  [[nodiscard]] at::Tensor take();
  void persist(archive& state);

private:
  void fold_waiting();

  at::Tensor sum_{};                     // [P] float64
  std::vector<weighted_upload> waiting_; // added and not yet in the sum
  double weight_ = 0.0;
};

} // namespace mneme
