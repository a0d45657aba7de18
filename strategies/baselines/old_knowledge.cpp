#include "strategies/baselines/old_knowledge.hpp"
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/softmax.h>
#include <charconv>
namespace mneme {
namespace {

// Axes: B rows of a step, C classes seen so far, O of them old.

std::string digits(double value) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

class lwf_loss final : public loss {
public:
  lwf_loss(std::int64_t old_classes, const distillation_options& with)
      : old_(old_classes), with_(with), plain_(cross_entropy_objective()),
        identity_("lwf " + std::to_string(old_) + " " + digits(with.weight) + " " + digits(with.temperature)) {}
  std::string identity() const override { return identity_; }
  bool reads_label_smoothing() const override { return true; }

  loss_output operator()(const loss_input& in) const override {
    // CE over the classes of the task (eq. 1).
    const auto fresh = in.logits.size(2) - old_;
    const auto own = (*plain_)({.logits = in.logits.narrow(2, old_, fresh).contiguous(),
                                .features = in.features,
                                .labels = (in.labels - old_).clamp_min(-1),
                                .row_weight = in.row_weight,
                                .sides = in.sides,
                                .label_smoothing = in.label_smoothing});
    loss_output out{.values = own.values.clone(), .d_logits = at::empty(in.logits.sizes(), in.logits.options())};
    out.d_logits.narrow(2, old_, fresh).copy_(own.d_logits);

    distil(in, with_, out); // over the old ones (eq. 2), at temperature T (eq. 3)
    out.terms = {{"cross_entropy", own.values}, {"distillation", out.values - own.values}};
    return out;
  }

private:
  std::int64_t old_;
  distillation_options with_;
  loss_ref plain_;
  std::string identity_;
};

} // namespace

void distil(const loss_input& in, const distillation_options& with, loss_output& out) {
  for (std::int64_t k = 0; k < in.logits.size(0); ++k) {
    const auto taught = at::softmax(in.teacher.select(0, k) / with.temperature, 1); // [B, T]
    const auto old = taught.size(1);
    const auto log_p = at::log_softmax(in.logits.select(0, k).narrow(1, 0, old) / with.temperature, 1);
    const auto rows = in.row_weight.select(0, k).unsqueeze(1); // [B, 1]
    const auto padded = rows == 0;
    out.d_logits.select(0, k).narrow(1, 0, old).copy_(
        ((log_p.exp() - taught) * (rows * (with.weight / with.temperature))).masked_fill_(padded, 0));
    out.values.select(0, k).sub_((taught * log_p * rows).masked_fill_(padded, 0).sum(at::kDouble) * with.weight);
  }
}

loss_ref distillation_objective(std::int64_t old_classes, const distillation_options& with) {
  return std::make_shared<lwf_loss>(old_classes, with);
}

void teach_old_classes(train_job& job, const broadcast& in, const distillation_options& with) {
  if (!in.extra || in.place.current.low == 0)
    return;
  job.teacher = in.extra;
  job.options.taught = {0, in.place.current.low};
  job.objective = distillation_objective(in.place.current.low, with);
}

task<task_plan> teaching_server::open_task(server_context&, const round_place& place) {
  if (place.task.value > 0)
    teacher_ = weights_only(weights());
  co_return task_plan{};
}

broadcast teaching_server::open_round(const round_place& place) {
  auto sent = averaging_server::open_round(place);
  sent.extra = teacher_;
  return sent;
}

void teaching_server::persist(archive& state) {
  averaging_server::persist(state);
  state(teacher_);
}

} // namespace mneme
