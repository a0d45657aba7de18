#include "strategies/osi_fl/held_back_loss.hpp"
#include <ATen/TensorOperators.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>
namespace mneme {
namespace {

// Axes: P weights of the net, n of a stretch of them.

class tensor_means_loss final : public loss {
public:
  tensor_means_loss(const model& net, double weight)
      : plain_(cross_entropy_objective()), shares_(at::zeros({net.size()}, at::kFloat)),
        identity_(fmt::format("held back by tensor {} {}", weight, net.identity())) {
    for (const auto& entry : net.layout())
      if (!entry.buffer && entry.size > 0)
        shares_.narrow(0, entry.offset, entry.size).fill_(weight / static_cast<double>(entry.size));
  }
  [[nodiscard]] std::string identity() const override { return identity_; }
  [[nodiscard]] loss_output operator()(const loss_input& in) const override { return (*plain_)(in); }
  [[nodiscard]] const char* main_term() const override { return plain_->main_term(); }
  [[nodiscard]] bool reads_label_smoothing() const override { return true; }
  [[nodiscard]] bool regularises() const override { return true; }
  /// 2 weight / size (w - start), by tensor.
  void regularise(const at::Tensor& weights, const at::Tensor& start, std::int64_t offset, const tensor_map* /*side*/,
                  at::Tensor& gradients) const override {
    gradients.addcmul_(shares_of(weights, offset), weights - start, 2.0);
  }
  [[nodiscard]] std::vector<loss_term> penalties(const at::Tensor& weights, const at::Tensor& start,
                                                 std::int64_t offset, const tensor_map* /*side*/) const override {
    return {{"held_back", ((weights - start).square() * shares_of(weights, offset)).sum(at::kDouble)}};
  }

private:
  [[nodiscard]] at::Tensor shares_of(const at::Tensor& weights, std::int64_t offset) const {
    return shares_.narrow(0, offset, weights.numel()).to(weights.device());
  }

  loss_ref plain_;
  at::Tensor shares_; // [P]: weight / size of the tensor
  std::string identity_;
};

} // namespace

loss_ref held_back_by_tensor(const model& net, double weight) {
  return std::make_shared<tensor_means_loss>(net, weight);
}

} // namespace mneme
