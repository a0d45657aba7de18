#include "strategies/baselines/mfcl_loss.hpp"
#include "runtime/base/tensor_map.hpp"
#include "runtime/models/function.hpp"
#include "strategies/baselines/row_losses.hpp"
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <fmt/format.h>
namespace mneme {
namespace {

class mfcl_loss final : public loss {
public:
  mfcl_loss(std::int64_t old_classes, const mfcl_weights& with) : old_(old_classes), with_(with) {}
  [[nodiscard]] std::string identity() const override {
    return fmt::format("mfcl {} {} {}", old_, with_.head, with_.features);
  }
  [[nodiscard]] const char* main_term() const override { return "cross_entropy"; }
  [[nodiscard]] loss_output operator()(const loss_input& in) const override {
    loss_output out{
        .d_logits = at::zeros_like(in.logits), .d_features = at::zeros_like(in.features), .stops_at_features = true};
    out.d_passing = at::zeros_like(in.logits);
    const auto models = in.logits.size(0);
    for (const auto* const name : {"cross_entropy", "head_cross_entropy", "feature_distillation"})
      out.terms.push_back({name, at::zeros({models}, in.logits.options().dtype(at::kDouble))});
    for (std::int64_t k = 0; k < models; ++k)
      add_model(in, k, out);
    out.values = out.terms[0].value + out.terms[1].value + out.terms[2].value;
    return out;
  }

private:
  void add_model(const loss_input& in, std::int64_t k, const loss_output& out) const;
  /// Values, weighted, into a term; gradients, weighted, into all of `to`.
  static void add(const row_losses& rows, const at::Tensor& weight, at::Tensor term,
                  std::initializer_list<at::Tensor> to) {
    term.add_((rows.values * weight).sum(at::kDouble));
    for (auto gradient : to)
      gradient.add_(rows.gradient * weight.unsqueeze(1));
  }
  [[nodiscard]] row_losses away_from_teacher(const at::Tensor& features, const at::Tensor& teacher,
                                             const tensor_map& side) const;

  std::int64_t old_;
  mfcl_weights with_;
};

/// Squares of what the old head says of features, less what the teacher says.
row_losses mfcl_loss::away_from_teacher(const at::Tensor& features, const at::Tensor& teacher,
                                        const tensor_map& side) const {
  const auto weight = side.at(old_head_weight).to(features.device()).unsqueeze(0);
  const auto said = stacked_product(features.unsqueeze(0), weight)[0] + side.at(old_head_bias).to(features.device());
  const auto away = said - teacher; // [B, O]
  const auto back = stacked_product(away.unsqueeze(0), weight.transpose(1, 2).contiguous())[0];
  const auto share = 1.0 / static_cast<double>(old_);
  return {.values = away.square().sum(1) * share, .gradient = back * (2.0 * share)};
}

void mfcl_loss::add_model(const loss_input& in, std::int64_t k, const loss_output& out) const {
  const auto logits = in.logits[k], teacher = in.teacher[k];
  const auto rows = logits.size(0), fresh = logits.size(1) - old_;
  const auto real = in.labels[k] >= 0;
  const auto is_replayed = at::arange(rows, in.labels.options()) >= rows - in.replayed; // [B]
  const auto labels = at::where(is_replayed, teacher.argmax(1), in.labels[k].clamp_min(0));
  const auto own = in.row_weight[k].masked_fill(is_replayed.logical_or(real.logical_not()), 0.0);
  const auto every = real.to(logits.scalar_type()) / real.sum();
  const auto value = [&](std::size_t term) { return out.terms[term].value[k]; };
  const auto newest = [&](const at::Tensor& gradient) { return gradient[k].narrow(1, old_, fresh); };
  add(cross_entropy_rows(logits.narrow(1, old_, fresh), labels - old_), own, value(0),
      {newest(out.d_logits), newest(out.d_passing)});
  add(cross_entropy_rows(logits, labels), every * with_.head, value(1), {out.d_logits[k]});
  add(away_from_teacher(in.features[k], teacher, *in.sides[static_cast<std::size_t>(k)]), every * with_.features,
      value(2), {out.d_features[k]});
}

} // namespace

loss_ref mfcl_objective(std::int64_t old_classes, const mfcl_weights& with) {
  return std::make_shared<mfcl_loss>(old_classes, with);
}

tensors_ref old_head(const model& net, const at::Tensor& flat, std::int64_t old) {
  auto head = std::make_shared<tensor_map>();
  for (const auto& entry : net.layout())
    if (entry.head)
      head->put(entry.shape.size() > 1 ? old_head_weight : old_head_bias,
                as_in_files(flat, entry).narrow(0, 0, old).contiguous());
  return head;
}

} // namespace mneme
