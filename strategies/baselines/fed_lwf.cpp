// Fed-LwF: FedAvg whose clients are held to what the previous task's model says (Li and Hoiem 2018, "Learning without
// Forgetting", eqs. 1-3, in the federated form of TARGET and STSA's comparison). For task t > 1 a client minimises
//     CE over the classes of the task (eq. 1) + lambda KD,
//     KD = -sum_c softmax(z_old / T)_c log softmax(z / T)_c (eqs. 2, 3)
// on the same augmented rows; KD covers the classes of earlier tasks. As in the public code KD is not multiplied by
// T^2. The previous model is sent with every round, since anybody may take part for the first time. A client whose task
// has no classes before it (the first, or any of the same classes) trains as in FedAvg: there is nothing to be asked.
#include "strategies/shared/averaging.hpp"
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/softmax.h>
#include <charconv>
namespace mneme {
namespace {

// Axes: B rows of a step, C classes seen so far, O of them old.

struct options {
  double weight = 3.0, temperature = 2.0;
};

std::string digits(double value) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

class lwf_loss final : public loss {
public:
  lwf_loss(std::int64_t old_classes, const options& with)
      : old_(old_classes), with_(with), plain_(cross_entropy_objective()),
        identity_("lwf " + std::to_string(old_) + " " + digits(with.weight) + " " + digits(with.temperature)) {}
  std::string identity() const override { return identity_; }

  /// Model by model, so that the bits of one do not depend on the others.
  loss_output operator()(const loss_input& in) const override {
    // CE over the classes of the task (eq. 1).
    const auto fresh = in.logits.size(2) - old_;
    const auto own = (*plain_)({.logits = in.logits.narrow(2, old_, fresh).contiguous(),
                                .features = in.features,
                                .labels = (in.labels - old_).clamp_min(-1),
                                .row_weight = in.row_weight,
                                .sides = in.sides});
    loss_output out{.values = own.values.clone(), .d_logits = at::empty(in.logits.sizes(), in.logits.options())};
    out.d_logits.narrow(2, old_, fresh).copy_(own.d_logits);

    // KD over the old ones (eq. 2), at temperature T (eq. 3).
    for (std::int64_t k = 0; k < in.logits.size(0); ++k) {
      const auto z = in.logits.select(0, k).narrow(1, 0, old_) / with_.temperature; // [B, O]
      const auto taught = at::softmax(in.teacher.select(0, k) / with_.temperature, 1);
      const auto log_p = at::log_softmax(z, 1);
      const auto rows = in.row_weight.select(0, k).unsqueeze(1); // [B, 1]
      const auto padded = rows == 0;
      out.d_logits.select(0, k)
          .narrow(1, 0, old_)
          .copy_(((log_p.exp() - taught) * (rows * (with_.weight / with_.temperature))).masked_fill_(padded, 0));
      out.values.select(0, k).sub_((taught * log_p * rows).masked_fill_(padded, 0).sum(at::kDouble) * with_.weight);
    }
    return out;
  }

private:
  std::int64_t old_;
  options with_;
  loss_ref plain_;
  std::string identity_;
};

/// Averages, and keeps the model that the task began with.
class lwf_server final : public averaging_server {
public:
  using averaging_server::averaging_server;
  task<task_plan> open_task(server_context&, const round_place& place) override {
    if (place.task.value > 0)
      teacher_ = weights_only(weights());
    co_return task_plan{};
  }
  broadcast open_round(const round_place& place) override {
    auto made = averaging_server::open_round(place);
    made.extra = teacher_;
    return made;
  }
  void persist(archive& state) override {
    averaging_server::persist(state);
    state(teacher_);
  }

private:
  tensors_ref teacher_; // null in task 1
};

class fed_lwf final : public averaging_method {
public:
  void keys(key_table& table) override {
    table.number("distillation_weight", with_.weight, {.low = 0.0}, "lambda: weight of the distillation loss.");
    table.number("temperature", with_.temperature, {.low = 0.0, .open_low = true}, "T of the distillation loss.");
  }
  std::unique_ptr<server_half> make_server() const override { return std::make_unique<lwf_server>(setup()); }

protected:
  void adjust(train_job& job, const broadcast& in) const override {
    if (!in.extra || in.place.current.low == 0)
      return;
    job.teacher = in.extra;
    job.options.taught = {0, in.place.current.low};
    job.objective = std::make_shared<lwf_loss>(in.place.current.low, with_);
  }

private:
  options with_;
};

const strategy_registration line{
    {.name = "fed-lwf",
     .summary = "FedAvg with distillation from the previous task's model (Li and Hoiem 2018, LwF)",
     .make = []() -> std::unique_ptr<strategy> { return std::make_unique<fed_lwf>(); }}};

} // namespace
} // namespace mneme
