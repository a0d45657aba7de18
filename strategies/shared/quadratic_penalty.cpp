#include "strategies/shared/quadratic_penalty.hpp"
#include "runtime/base/tensor_map.hpp"
#include <ATen/TensorOperators.h>
namespace mneme {
namespace {

class quadratic_loss final : public cross_entropy_loss {
public:
  quadratic_loss(std::string identity, std::vector<quadratic_penalty> penalties)
      : identity_(std::move(identity)), penalties_(std::move(penalties)) {}
  [[nodiscard]] std::string identity() const override { return identity_; }
  [[nodiscard]] bool regularizes() const override { return true; }

  /// Gradient of a penalty: strength * importance * (w - anchor).
  void regularize(const at::Tensor& weights, const at::Tensor& start, std::int64_t offset, const tensor_map* auxiliary,
                  at::Tensor& gradients) const override {
    for (const auto& penalty : penalties_)
      if (const auto importance = importance_of(penalty, weights, offset, auxiliary); importance.defined())
        gradients.addcmul_(importance, change_of(penalty, weights, start, offset, auxiliary), penalty.strength);
  }
  [[nodiscard]] std::vector<loss_term> penalties(const at::Tensor& weights, const at::Tensor& start,
                                                 std::int64_t offset, const tensor_map* auxiliary) const override {
    std::vector<loss_term> terms;
    for (const auto& penalty : penalties_)
      if (const auto importance = importance_of(penalty, weights, offset, auxiliary); importance.defined())
        terms.push_back(
            {penalty.term,
             (change_of(penalty, weights, start, offset, auxiliary).square() * importance).sum(at::kDouble) *
                 (penalty.strength / 2.0)});
    return terms;
  }

private:
  /// Returns the slice of a tensor [P] for these weights, which begin at `offset`.
  static at::Tensor part_of(const at::Tensor& whole, const at::Tensor& weights, std::int64_t offset) {
    return whole.to(weights.device()).narrow(0, offset, weights.numel());
  }
  /// Returns an undefined tensor if the job's auxiliary tensors lack the importance.
  static at::Tensor importance_of(const quadratic_penalty& penalty, const at::Tensor& weights, std::int64_t offset,
                                  const tensor_map* auxiliary) {
    if (penalty.constant.defined())
      return part_of(penalty.constant, weights, offset);
    const auto* const known = auxiliary ? auxiliary->find(penalty.importance) : nullptr;
    return known ? part_of(*known, weights, offset) : at::Tensor{};
  }
  static at::Tensor change_of(const quadratic_penalty& penalty, const at::Tensor& weights, const at::Tensor& start,
                              std::int64_t offset, const tensor_map* auxiliary) {
    return weights - (penalty.anchor ? part_of(auxiliary->at(penalty.anchor), weights, offset) : start);
  }

  std::string identity_;
  std::vector<quadratic_penalty> penalties_;
};

} // namespace

loss_ref quadratic_objective(std::string identity, std::vector<quadratic_penalty> penalties) {
  return std::make_shared<quadratic_loss>(std::move(identity), std::move(penalties));
}

} // namespace mneme
