#include "strategies/lander/anchored_loss.hpp"
#include <ATen/ATen.h>
#include <cmath>
#include <fmt/format.h>
namespace mneme {

part_weights part_weights_of(std::int64_t old_classes, std::int64_t seen_classes) {
  if (old_classes == 0)
    return {};
  const double a = std::log2(static_cast<double>(seen_classes) / 2.0 + 1.0);
  const double b = std::sqrt(static_cast<double>(old_classes) / static_cast<double>(seen_classes));
  return {.fresh = 0.2 * (1.0 + 1.0 / a) / b, .old = 0.4 * a * b};
}

namespace {

class anchored_loss final : public loss {
public:
  explicit anchored_loss(anchored_terms terms)
      : terms_(std::move(terms)), parts_(part_weights_of(terms_.old, terms_.opened)),
        identity_(fmt::format("anchored {} {} {} {} {} {} {}", terms_.classes, terms_.old, terms_.opened,
                              terms_.anchoring, terms_.radius, terms_.temperature, terms_.anchors.size(1))) {}
  std::string identity() const override { return identity_; }

  /// Model by model, so that the bits of one do not depend on the others.
  loss_output operator()(const loss_input& in) const override {
    const auto options = in.logits.options().dtype(at::kDouble);
    loss_output out{.d_logits = at::zeros_like(in.logits)};
    for (const char* name : {"cross_entropy", "anchoring", "distillation", "map_distillation"})
      out.terms.push_back({name, at::zeros({in.logits.size(0)}, options)});
    const auto own = in.logits.size(1) - in.replayed;
    for (std::int64_t k = 0; k < in.logits.size(0); ++k) {
      const auto part = [&](const at::Tensor& of_step, std::int64_t first, std::int64_t rows) {
        return of_step[k].narrow(0, first, rows);
      };
      const auto value_of = [&](std::size_t term) { return out.terms[term].value[k]; };
      learn(part(in.logits, 0, own), part(in.labels, 0, own), part(in.row_weight, 0, own), part(out.d_logits, 0, own),
            {value_of(0), value_of(1)});
      if (in.replayed > 0)
        keep(part(in.logits, own, in.replayed), part(in.teacher, own, in.replayed),
             part(in.row_weight, own, in.replayed), part(out.d_logits, own, in.replayed), {value_of(2), value_of(3)});
    }
    out.values = out.terms[0].value + out.terms[1].value + out.terms[2].value + out.terms[3].value;
    return out;
  }

private:
  /// What rows add to the loss: by the classes, and by the map into the space of the anchors.
  struct row_values {
    at::Tensor of_classes{}, of_map{}; // [] float64 each
  };

  /// Cross-entropy over the new classes, and the bounded pull to the anchors. @param weight [B], 0 where padded
  void learn(const at::Tensor& logits, const at::Tensor& labels, const at::Tensor& weight, at::Tensor d,
             row_values value) const {
    const auto fresh = terms_.opened - terms_.old, embedding = terms_.anchors.size(1);
    const auto real = weight > 0, padded = real.logical_not().unsqueeze(1);
    const auto shares = (weight * parts_.fresh).unsqueeze(1); // [B, 1]
    const auto places = (labels - terms_.old).clamp(0, fresh - 1).unsqueeze(1);
    const auto log_p = at::log_softmax(logits.narrow(1, terms_.old, fresh), 1);
    auto slope = at::scatter_add(log_p.exp(), 1, places, at::full_like(places, -1, log_p.options()));
    d.narrow(1, terms_.old, fresh).add_((slope * shares).masked_fill(padded, 0));
    value.of_classes.sub_((log_p.gather(1, places) * shares).masked_fill(padded, 0).sum(at::kDouble));
    if (embedding == 0)
      return;
    const auto away = logits.narrow(1, terms_.classes, embedding) -
                      terms_.anchors.to(logits.device()).index_select(0, labels.clamp_min(0)); // [B, E]
    // One hinge for the batch, as the public code has it: the distance is a mean over rows before it is cut.
    const auto distance = (away.square().mean(1) * weight).masked_fill(real.logical_not(), 0).sum(at::kDouble);
    const auto beyond = at::relu(distance - terms_.radius);
    const double pull = parts_.fresh * terms_.anchoring;
    value.of_map.add_(beyond * pull);
    const auto open = (beyond > 0).to(at::kFloat); // [] on the device: the host does not wait for it
    const auto slope_of_rows = (weight * open * (2.0 * pull / static_cast<double>(embedding))).unsqueeze(1);
    d.narrow(1, terms_.classes, embedding).add_((away * slope_of_rows).masked_fill(padded, 0));
  }

  /// Distillation of the old classes, -sum softmax(t / tau) log softmax(s / tau), and of the map.
  void keep(const at::Tensor& logits, const at::Tensor& taught, const at::Tensor& weight, at::Tensor d,
            row_values value) const {
    const auto embedding = terms_.anchors.size(1);
    const auto padded = (weight <= 0).unsqueeze(1), shares = (weight * parts_.old).unsqueeze(1);
    const auto log_q = at::log_softmax(logits.narrow(1, 0, terms_.old) / terms_.temperature, 1);
    const auto p = at::log_softmax(taught.narrow(1, 0, terms_.old) / terms_.temperature, 1).exp();
    value.of_classes.sub_((p * log_q * shares).masked_fill(padded, 0).sum(at::kDouble));
    d.narrow(1, 0, terms_.old).add_(((log_q.exp() - p) * (shares / terms_.temperature)).masked_fill(padded, 0));
    if (embedding == 0)
      return;
    const auto away = (logits - taught).narrow(1, terms_.classes, embedding);
    const double mean = 1.0 / static_cast<double>(embedding);
    value.of_map.add_((away.square() * shares).masked_fill(padded, 0).sum(at::kDouble) * mean);
    d.narrow(1, terms_.classes, embedding).add_((away * (shares * (2.0 * mean))).masked_fill(padded, 0));
  }

  anchored_terms terms_;
  part_weights parts_;
  std::string identity_;
};

} // namespace

loss_ref anchored_objective(const anchored_terms& terms) { return std::make_shared<anchored_loss>(terms); }

at::Tensor drawn_anchors(std::int64_t classes, std::int64_t embedding, const rng_key& key) {
  constexpr double mean = 0.019, shared_variance = 0.143, own_variance = 0.041;
  auto anchors = at::empty({classes, embedding}, at::kFloat);
  rng_stream draw(key);
  std::vector<double> shared;
  for (std::int64_t i = 0; i < embedding; ++i)
    shared.push_back(mean + std::sqrt(shared_variance) * draw.normal());
  for (std::int64_t i = 0; i < anchors.numel(); ++i)
    anchors.mutable_data_ptr<float>()[i] =
        static_cast<float>(shared[static_cast<std::size_t>(i % embedding)] + std::sqrt(own_variance) * draw.normal());
  return anchors;
}

} // namespace mneme
