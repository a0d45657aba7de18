#include "runtime/base/check.hpp"
#include "runtime/kernels/cuda/cross_entropy_rows.hpp"
#include "runtime/kernels/cuda/on_device.hpp"
#include "runtime/kernels/elementwise.hpp"
#include "runtime/method/training.hpp"
#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/scalar_tensor.h>
#include <charconv>
namespace mneme {

// Axes: K models, B rows of a step, C classes of the loss.

namespace {

/// Makes one kernel launch per step; ATen operations would need about twelve.
loss_output device_cross_entropy(const loss_input& in) {
  const auto models = in.logits.size(0), rows = in.logits.size(1), classes = in.logits.size(2);
  const auto logits = in.logits.contiguous(), labels = in.labels.contiguous(), weight = in.row_weight.contiguous();
  auto losses = at::empty({models, rows}, logits.options().dtype(at::kDouble));
  auto d_logits = at::empty({models, rows, classes}, logits.options());
  kernels::cuda::start_on(logits.device(),
                          kernels::cuda::cross_entropy_group{.logits = logits.const_data_ptr<float>(),
                                                             .labels = labels.const_data_ptr<std::int64_t>(),
                                                             .weight = weight.const_data_ptr<float>(),
                                                             .d_logits = d_logits.mutable_data_ptr<float>(),
                                                             .losses = losses.mutable_data_ptr<double>(),
                                                             .rows = models * rows,
                                                             .classes = classes,
                                                             .smoothing = in.label_smoothing});
  return {.values = losses.sum(1), .d_logits = std::move(d_logits)};
}

/// Computes the loss model by model, so that a model's bits do not depend on other models.
loss_output cross_entropy_of_targets(const loss_input& in) {
  loss_output out{.values = at::empty({in.logits.size(0)}, in.logits.options().dtype(at::kDouble)),
                  .d_logits = at::empty(in.logits.sizes(), in.logits.options())};
  for (std::int64_t k = 0; k < in.logits.size(0); ++k) {
    auto target = in.targets.select(0, k); // [B, C]
    if (in.label_smoothing > 0.0)
      target = target * (1.0 - in.label_smoothing) + in.label_smoothing / static_cast<double>(target.size(1));
    const auto weight = in.row_weight.select(0, k).unsqueeze(1); // [B, 1]
    const auto log_p = at::log_softmax(in.logits.select(0, k), 1);
    out.values.select(0, k).copy_((target * log_p * weight).sum(at::kDouble).neg_());
    out.d_logits.select(0, k).copy_((log_p.exp() * target.sum(1, true) - target) * weight);
  }
  return out;
}

} // namespace

loss_output cross_entropy_loss::operator()(const loss_input& in) const {
  if (in.targets.defined())
    return cross_entropy_of_targets(in);
  if (!in.logits.is_cpu())
    return device_cross_entropy(in);
  MNEME_CHECK(in.logits.is_contiguous() && in.labels.is_contiguous() && in.row_weight.is_contiguous());
  const auto models = in.logits.size(0), rows = in.logits.size(1), classes = in.logits.size(2);
  loss_output out{.values = at::empty({models}, at::kDouble),
                  .d_logits = at::empty({models, rows, classes}, at::kFloat)};
  for (std::int64_t k = 0; k < models; ++k)
    kernels::cross_entropy_of_rows(out.values.mutable_data_ptr<double>()[k],
                                   {.logits = in.logits.const_data_ptr<float>() + k * rows * classes,
                                    .labels = in.labels.const_data_ptr<std::int64_t>() + k * rows,
                                    .weight = in.row_weight.const_data_ptr<float>() + k * rows,
                                    .d_logits = out.d_logits.mutable_data_ptr<float>() + k * rows * classes,
                                    .rows = rows,
                                    .classes = classes,
                                    .smoothing = in.label_smoothing});
  return out;
}

namespace {

class proximal_loss final : public cross_entropy_loss {
public:
  explicit proximal_loss(double mu) : mu_(mu) {}

  [[nodiscard]] std::string identity() const override {
    char text[32];
    const auto end = std::to_chars(text, text + sizeof text, mu_).ptr; // writes all digits, so texts are equal only for
                                                                       // equal mu
    return "cross-entropy + proximal " + std::string(text, end);
  }
  [[nodiscard]] bool regularizes() const override { return mu_ != 0.0; }

  void regularize(const at::Tensor& weights, const at::Tensor& start, std::int64_t /*offset*/,
                  const tensor_map* /*side*/, at::Tensor& gradients) const override {
    if (!weights.is_cpu()) {
      gradients.add_(weights - start, mu_);
      return;
    }
    kernels::add_proximal_gradient(gradients.mutable_data_ptr<float>(), weights.const_data_ptr<float>(),
                                   start.const_data_ptr<float>(), weights.numel(), static_cast<float>(mu_));
  }
  [[nodiscard]] std::vector<loss_term> penalties(const at::Tensor& weights, const at::Tensor& start,
                                                 std::int64_t /*offset*/, const tensor_map* /*side*/) const override {
    return {{"proximal", half_square_distance(weights, start, mu_)}};
  }

private:
  double mu_;
};

} // namespace

loss_ref cross_entropy_objective() {
  static const auto only = std::make_shared<const cross_entropy_loss>();
  return only;
}

at::Tensor half_square_distance(const at::Tensor& a, const at::Tensor& b, double factor) {
  if (!a.is_cpu())
    return (a - b).square_().sum(at::kDouble).mul_(factor / 2.0);
  MNEME_CHECK(a.is_contiguous() && b.is_contiguous() && a.numel() == b.numel(), a.numel(), b.numel());
  double squares = 0.0;
  kernels::add_square_distance(squares, a.const_data_ptr<float>(), b.const_data_ptr<float>(), a.numel());
  return at::scalar_tensor(factor / 2.0 * squares, at::kDouble);
}

loss_ref proximal_objective(double mu) { return std::make_shared<proximal_loss>(mu); }

} // namespace mneme
