// FLwF-2T: federated learning without forgetting with two teachers (Usmanova et al. 2021, "A distillation-based
// approach integrating continual learning and federated learning for pervasive services"), on FedHAF's net. For t > 1
//     L = a CE + b KD(teacher 1) + (1 - a - b) KD(teacher 2),
//     KD = KL(softmax(z_teacher / T) || softmax(z / T)) over the old classes, a mean over rows,
// where teacher 1 is the client's own model at the end of the last task it took part in, and teacher 2 the server's.
// As in FedCIL's re-implementation a = b = 1/3 and KD is not multiplied by T^2; there teacher 2 is the model that the
// round begins with, here that of the task before unless teacher2 = "received". A client without a teacher 1 gives its
// weight to teacher 2.
#include "strategies/shared/split_learning.hpp"
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <fmt/format.h>
namespace mneme {
namespace {

// Axes: B rows of a step, C classes seen so far, O of them old, n rows of a client.

struct teaching {
  double labels = 1.0, own = 0.0, server = 0.0; // a, b, 1 - a - b
  double temperature = 2.0;
  std::int64_t old = 0; // O
};

/// Teacher 1's logits come as the rows' targets, teacher 2 is the job's.
class two_teachers final : public loss {
public:
  explicit two_teachers(const teaching& with)
      : with_(with), plain_(cross_entropy_objective()),
        identity_(fmt::format("two teachers {} {} {} {} {}", with.labels, with.own, with.server, with.temperature,
                              with.old)) {}
  std::string identity() const override { return identity_; }
  bool reads_targets() const override { return true; }
  bool reads_label_smoothing() const override { return true; }
  const char* main_term() const override { return plain_->main_term(); }

  /// Model by model, so that the bits of one do not depend on the others.
  loss_output operator()(const loss_input& in) const override {
    auto out = (*plain_)({.logits = in.logits,
                          .features = in.features,
                          .labels = in.labels,
                          .row_weight = in.row_weight,
                          .sides = in.sides,
                          .label_smoothing = in.label_smoothing});
    if (with_.labels == 1.0) // a = 1 is FedAvg, to the bit
      return out;
    out.d_logits = out.d_logits * with_.labels;
    out.terms = {{"cross_entropy", out.values * with_.labels},
                 {"own_distillation", at::zeros_like(out.values)},
                 {"server_distillation", at::zeros_like(out.values)}};
    for (std::int64_t k = 0; k < in.logits.size(0); ++k) {
      if (with_.own > 0.0)
        add(in, k, in.targets[k].narrow(1, 0, with_.old), with_.own, out.terms[1].value[k], out);
      if (with_.server > 0.0)
        add(in, k, in.teacher[k], with_.server, out.terms[2].value[k], out);
    }
    out.values = out.terms[0].value + out.terms[1].value + out.terms[2].value;
    return out;
  }

private:
  void add(const loss_input& in, std::int64_t k, const at::Tensor& taught, double weight, at::Tensor value,
           loss_output& out) const {
    const auto log_q = at::log_softmax(in.logits[k].narrow(1, 0, with_.old) / with_.temperature, 1); // [B, O]
    const auto log_p = at::log_softmax(taught / with_.temperature, 1);
    const auto p = log_p.exp(), rows = in.row_weight[k].unsqueeze(1); // [B, 1]
    const auto padded = rows == 0;
    value.add_((p * (log_p - log_q) * rows).masked_fill_(padded, 0).sum(at::kDouble) * weight);
    out.d_logits[k]
        .narrow(1, 0, with_.old)
        .add_(((log_q.exp() - p) * (rows * (weight / with_.temperature))).masked_fill_(padded, 0));
  }

  teaching with_;
  loss_ref plain_;
  std::string identity_;
};

enum class server_teacher : std::uint8_t { before_task, received };

struct lwf_2t_options {
  double labels = 1.0 / 3.0, own = 1.0 / 3.0, temperature = 2.0;
  server_teacher teacher2 = server_teacher::before_task;
};

class fed_lwf_2t final : public split_method {
public:
  void keys(key_table& table) override {
    split_method::keys(table);
    table.number("label_weight", with_.labels, {.low = 0.0, .high = 1.0}, "a: weight of cross-entropy; 1 is FedAvg.");
    table.number("own_weight", with_.own, {.low = 0.0, .high = 1.0},
                 "b: weight of teacher 1, the client's own; teacher 2, the server's, has the rest.");
    table.number("temperature", with_.temperature, {.low = 0.0, .open_low = true}, "T of both distillations.");
    table.choice("teacher2", with_.teacher2,
                 {{"before-task", server_teacher::before_task}, {"received", server_teacher::received}},
                 "The server's teacher: its model at the end of the task before, or what the round begins with.");
  }
  diagnostics check(const method_setup& setup) const override {
    auto wrong = split_method::check(setup);
    if (with_.labels + with_.own > 1.0 + 1e-9)
      wrong.push_back({"strategy.own_weight",
                       fmt::format("strategy.own_weight = {}: with label_weight = {} nothing is left for teacher 2; "
                                   "expected a sum of at most 1",
                                   with_.own, with_.labels)});
    return wrong;
  }
  task<client_result> client_round(client_context& ctx, const broadcast& in) const override;

protected:
  bool needs_teacher() const override { return true; }

private:
  lwf_2t_options with_;
};

/// What the client's own models are remembered as: of the task before, and the newest of this one.
constexpr const char *own_teacher = "own_teacher", *own_model = "own_model";

task<client_result> fed_lwf_2t::client_round(client_context& ctx, const broadcast& in) const {
  const bool begins = !feature_memory::saved_in(ctx.memory()).knows(in.place.task.value);
  auto looking = features_of_rows(ctx, in, net(), {.ratio = 0.0});
  const auto features = co_await looking;
  const std::vector<embedding_rows> parts{features.current()};
  auto job = training(ctx, in, rows_to_train(parts, net().features()));
  const auto* const teacher = ctx.memory().find(begins ? own_model : own_teacher);
  const auto old = in.place.current.low;

  if (in.extra && old > 0) {
    teaching with{.labels = with_.labels,
                  .own = teacher ? with_.own : 0.0,
                  .server = std::max(0.0, 1.0 - with_.labels - (teacher ? with_.own : 0.0)),
                  .temperature = with_.temperature,
                  .old = old};
    job.objective = std::make_shared<two_teachers>(with);
    job.teacher = with_.teacher2 == server_teacher::received ? in.weights : in.extra;
    job.options.taught = {0, old};
    if (with.own > 0.0 && job.samples.size() > 0) {
      auto asking = ctx.extract({.net = net().learnt.net, .weights = weights_only(*teacher), .samples = job.samples});
      const auto said = co_await asking;
      job.notes.targets = said.logits.cpu().narrow(1, 0, in.place.opened.high).contiguous();
    }
  }

  auto learning = ctx.train(std::move(job));
  const auto learnt = co_await learning;
  auto memory = std::make_shared<tensor_map>();
  features.save(*memory);
  memory->put(own_model, learnt.weights->at(flat_weights).cpu());
  if (teacher)
    memory->put(own_teacher, *teacher);
  co_return client_result{.upload = learnt.weights, .memory = memory, .rows = learnt.rows_seen};
}

const strategy_registration fed_lwf_2t_line{
    {.name = "fed-lwf-2t",
     .summary = "LwF with two teachers, the client's own and the server's, on FedHAF's net (Usmanova et al. 2021)",
     .make = []() -> std::unique_ptr<strategy> { return std::make_unique<fed_lwf_2t>(); }}};

} // namespace
} // namespace mneme
