#include "tools/python/engine/native_losses.hpp"
#include "runtime/base/tensor_map.hpp"
#include "strategies/baselines/old_knowledge.hpp"
#include <ATen/ATen.h>
#include <fmt/format.h>
#include <stdexcept>
namespace mneme {
namespace {

class corrected_loss final : public loss {
public:
  std::string identity() const override { return "corrected cross-entropy"; }
  loss_output operator()(const loss_input& in) const override { return (*plain_)(in); }
  const char* main_term() const override { return plain_->main_term(); }
  bool regularises() const override { return true; }
  void regularise(const at::Tensor& weights, const at::Tensor& /*start*/, std::int64_t offset, const tensor_map* side,
                  at::Tensor& gradients) const override {
    if (!side || !side->find("correction"))
      throw std::invalid_argument("mneme.corrected() reads side={'correction': tensor [P]}, which the job has not");
    const auto& correction = side->at("correction");
    if (correction.numel() < offset + weights.numel() || correction.scalar_type() != at::kFloat)
      throw std::invalid_argument("side['correction'] is not float32 of as many numbers as the net has weights");
    gradients.add_(correction.to(weights.device()).narrow(0, offset, weights.numel()));
  }

private:
  loss_ref plain_ = cross_entropy_objective();
};

class distilling_loss final : public loss {
public:
  explicit distilling_loss(const distillation_options& with)
      : with_(with), identity_(fmt::format("distillation {} {}", with.weight, with.temperature)) {}
  std::string identity() const override { return identity_; }
  const char* main_term() const override { return "distillation"; }

  loss_output operator()(const loss_input& in) const override {
    loss_output out{.values = at::zeros({in.logits.size(0)}, in.logits.options().dtype(at::kDouble)),
                    .d_logits = at::zeros(in.logits.sizes(), in.logits.options())};
    distil(in, with_, out);
    return out;
  }

private:
  distillation_options with_;
  std::string identity_;
};

class summed_loss final : public loss {
public:
  summed_loss(loss_ref first, loss_ref second)
      : first_(std::move(first)), second_(std::move(second)),
        identity_(fmt::format("({}) + ({})", first_->identity(), second_->identity())) {}

  [[nodiscard]] bool teaches() const { return reads_teacher(*first_) || reads_teacher(*second_); }
  std::string identity() const override { return identity_; }

  loss_output operator()(const loss_input& in) const override {
    auto sum = (*first_)(in);
    auto more = (*second_)(in);
    auto terms = terms_of(sum, *first_);
    for (auto& term : terms_of(more, *second_))
      terms.push_back(std::move(term));
    sum.values = sum.values + more.values;
    sum.d_logits.add_(more.d_logits);
    if (more.d_features.defined())
      sum.d_features = sum.d_features.defined() ? sum.d_features.add_(more.d_features) : more.d_features;
    sum.terms = std::move(terms);
    return sum;
  }

  bool regularises() const override { return first_->regularises() || second_->regularises(); }
  void regularise(const at::Tensor& weights, const at::Tensor& start, std::int64_t offset, const tensor_map* side,
                  at::Tensor& gradients) const override {
    for (const auto* const part : {first_.get(), second_.get()})
      if (part->regularises())
        part->regularise(weights, start, offset, side, gradients);
  }
  std::vector<loss_term> penalties(const at::Tensor& weights, const at::Tensor& start, std::int64_t offset,
                                   const tensor_map* side) const override {
    auto all = first_->penalties(weights, start, offset, side);
    for (auto& more : second_->penalties(weights, start, offset, side))
      all.push_back(std::move(more));
    return all;
  }

private:
  static std::vector<loss_term> terms_of(const loss_output& out, const loss& part) {
    return out.terms.empty() ? std::vector<loss_term>{{part.main_term(), out.values}} : out.terms;
  }

  loss_ref first_, second_;
  std::string identity_;
};

} // namespace

loss_ref corrected_objective() {
  static const auto only = std::make_shared<const corrected_loss>();
  return only;
}

loss_ref distilling_objective(double weight, double temperature) {
  if (!(weight >= 0.0) || !(temperature > 0.0))
    throw std::invalid_argument("mneme.distillation(weight, temperature): expected weight >= 0 and temperature > 0");
  return std::make_shared<const distilling_loss>(distillation_options{.weight = weight, .temperature = temperature});
}

loss_ref added_losses(const loss_ref& first, const loss_ref& second) {
  return std::make_shared<const summed_loss>(first, second);
}

bool reads_teacher(const loss& objective) {
  if (const auto* const sum = dynamic_cast<const summed_loss*>(&objective))
    return sum->teaches();
  return dynamic_cast<const distilling_loss*>(&objective) != nullptr;
}

} // namespace mneme
