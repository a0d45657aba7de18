/// weighted_change: the running sum of what uploads changed, in float64, where each began from weights of its own.
#pragma once
#include "runtime/training/folding.hpp"
#include <vector>
namespace mneme {

class archive;

/// Sums c (w - start) as it goes. Uploads that share their start are told from it once, so a sum costs little more than
/// one of the uploads alone. Order of add() decides the last bits: call it in delivery order.
class weighted_change {
public:
  /// What is given is frozen, as tensors of a tensor_map are.
  /// @param value, start [P] float32, contiguous @param weight > 0
  void add(const at::Tensor& value, const at::Tensor& start, double weight);
  [[nodiscard]] bool empty() const noexcept { return empty_; }
  /// base + scale * sum as float32 [P]; forgets everything. @pre not empty()
  [[nodiscard]] at::Tensor take(const at::Tensor& base, double scale);
  void persist(archive& state);

private:
  void fold_waiting();
  void fold_starts();

  at::Tensor sum_{}; // [P] float64; kept for the next sum
  bool empty_ = true;
  std::vector<weighted_upload> waiting_; // added and not yet in the sum
  std::vector<weighted_upload> starts_;  // the same, to be subtracted; in the order of their first uploads
};

} // namespace mneme
