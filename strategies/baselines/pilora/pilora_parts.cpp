#include "strategies/baselines/pilora/pilora_parts.hpp"
#include "runtime/base/tensor_map.hpp"
#include "strategies/shared/row_losses.hpp"
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/zeros.h>
#include <cmath>
#include <fmt/format.h>
namespace mneme {
namespace {

class pilora_loss final : public differentiable_loss {
public:
  pilora_loss(const low_rank_vit& net, const pilora_weights& settings)
      : differentiable_loss({.identity = fmt::format("pilora {} {} {} of {}", settings.prototype, settings.sparsity,
                                                     settings.orthogonality, net.identity()),
                             .terms = {"cross_entropy", "prototype"},
                             .reads_label_smoothing = true},
                            [settings](const loss_rows& in) -> std::vector<at::Tensor> {
                              const auto own =
                                  in.labels.unsqueeze(1); // the logit of the true class is its negative distance
                              return {cross_entropy_rows(in.logits, in.labels, in.label_smoothing),
                                      in.logits.gather(1, own).squeeze(1) * -settings.prototype};
                            }),
        options_(settings) {
    for (const auto& own : net.parts())
      for (const auto place : {own.query_down, own.value_down})
        downs_.push_back(net.layout()[place]);
  }
  [[nodiscard]] bool regularizes() const override { return true; }
  void regularize(const at::Tensor& weights, const at::Tensor& start, std::int64_t offset, const tensor_map* auxiliary,
                  at::Tensor& gradients) const override;
  [[nodiscard]] std::vector<loss_term> penalties(const at::Tensor& weights, const at::Tensor& start,
                                                 std::int64_t offset, const tensor_map* auxiliary) const override;

private:
  /// Calls visit(parameter, A) for each A [r, d] within the segment `flat`, which begins at `offset` of the weights.
  template <class Visit>
  void each_down(const at::Tensor& flat, std::int64_t offset, const Visit& visit) const {
    for (const auto& entry : downs_)
      if (entry.offset >= offset && entry.offset + entry.size <= offset + flat.numel())
        visit(entry, flat.narrow(0, entry.offset - offset, entry.size).view(entry.shape));
  }

  pilora_weights options_;
  std::vector<parameter> downs_;
};

void pilora_loss::regularize(const at::Tensor& weights, const at::Tensor& /*start*/, std::int64_t offset,
                             const tensor_map* auxiliary, at::Tensor& gradients) const {
  each_down(weights, offset, [&](const parameter& entry, const at::Tensor& down) {
    auto slope = gradients.narrow(0, entry.offset - offset, entry.size).view(entry.shape);
    slope.add_(down.sign(), options_.sparsity);
    if (auxiliary) {
      const auto earlier = auxiliary->at(earlier_weight_name(entry)).to(down.device()); // [t r, d]
      const auto products = at::matmul(earlier, down.t());                              // A^s A^T [t r, r]
      slope.add_(at::matmul(products.sign().t(), earlier), options_.orthogonality);
    }
  });
}

std::vector<loss_term> pilora_loss::penalties(const at::Tensor& weights, const at::Tensor& /*start*/,
                                              std::int64_t offset, const tensor_map* auxiliary) const {
  auto sparsity = at::zeros({}, weights.options().dtype(at::kDouble));
  auto orthogonality = sparsity.clone();
  bool is_there = false;
  each_down(weights, offset, [&](const parameter& entry, const at::Tensor& down) {
    is_there = true;
    sparsity.add_(down.abs().sum(at::kDouble), options_.sparsity);
    if (auxiliary)
      orthogonality.add_(
          at::matmul(auxiliary->at(earlier_weight_name(entry)).to(down.device()), down.t()).abs().sum(at::kDouble),
          options_.orthogonality);
  });
  if (!is_there)
    return {};
  std::vector<loss_term> terms{{"sparsity", sparsity}};
  if (auxiliary)
    terms.push_back({"orthogonality", orthogonality});
  return terms;
}

class class_feature_observer final : public training_observer {
public:
  explicit class_feature_observer(std::int64_t classes) : classes_(classes) {}
  /// Computes the sums as a product with one-hot rows, because its order of summation does not depend on the number of
  /// threads.
  void observe(const observed_step& step) override {
    const auto all = at::arange(classes_, step.labels.options()).unsqueeze(1);
    const auto of_class = step.labels.unsqueeze(0).eq(all).to(at::kDouble); // [classes, B]
    const auto sums = at::matmul(of_class, step.features.detach().to(at::kDouble)), rows = of_class.sum(1);
    sums_ = sums_.defined() ? sums_ + sums : sums;
    rows_ = rows_.defined() ? rows_ + rows : rows;
  }
  [[nodiscard]] tensor_map result() const override {
    tensor_map records;
    records.put(observed_feature_sums, sums_);
    records.put(observed_class_rows, rows_);
    return records;
  }

private:
  std::int64_t classes_;
  at::Tensor sums_{}, rows_{}; // [classes, D], [classes] float64
};

} // namespace

observation_ref class_feature_observation(std::int64_t classes) {
  return std::make_shared<const training_observation>(training_observation{
      .identity = fmt::format("feature sums of {} classes", classes),
      .begin = [classes](const at::Tensor&) { return std::make_unique<class_feature_observer>(classes); }});
}

loss_ref pilora_objective(const low_rank_vit& net, const pilora_weights& settings) {
  return std::make_shared<pilora_loss>(net, settings);
}

std::string earlier_weight_name(const parameter& down) { return "earlier." + down.name; }

at::Tensor center_weights(const at::Tensor& centers, const at::Tensor& means, double temperature) {
  const auto clients = centers.size(0);
  const auto same = at::full({clients}, 1.0 / static_cast<double>(clients), at::kDouble);
  if (means.size(0) == 0)
    return same;
  const auto sums = (centers.unsqueeze(1) - means.unsqueeze(0)).square().sum(2).sqrt().sum(1); // S [K]
  const auto closeness = 1.0 / sums;
  const auto least = closeness.min(), range = closeness.max() - least;
  if (!std::isfinite(range.item<double>()) || range.item<double>() == 0.0)
    return same;
  return at::softmax((closeness - least) / range / temperature, 0);
}

} // namespace mneme
