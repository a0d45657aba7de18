// FLwF-2T: A. Usmanova et al., "A distillation-based approach integrating continual learning and federated learning for
// pervasive services", 2021, on FedHAF's net. For task t > 1, a client minimizes
//     L = a CE + b KD(teacher 1) + (1 - a - b) KD(teacher 2),
//     KD = KL(softmax(z_teacher / T) || softmax(z / T)) over the old classes, a mean over rows.
// Teacher 1 is the client's own model at the end of the last task in which it took part. Teacher 2 is the server's
// model.
//
// The public code (FedCIL's re-implementation) has a = b = 1/3 and does not multiply KD by T^2. Its teacher 2 is the
// model at the start of the round.
//
// Ours: a, b and KD are those of FedCIL. Teacher 2 is the server's model before the task (teacher2 = "received": the
// model at the start of the round). For a client without teacher 1, teacher 2 has the weight of both.
#include "strategies/shared/row_losses.hpp"
#include "strategies/shared/split_learning.hpp"
#include <fmt/format.h>
namespace mneme {
namespace {

// Axes: B rows of a step, C classes seen, O old classes, n rows of a client.

struct teaching {
  double labels = 1.0, own = 0.0, server = 0.0; // the weights a, b and 1 - a - b
  double temperature = 2.0;
  std::int64_t old = 0; // O
};

/// Three terms: a CE, b KD(own teacher), (1 - a - b) KD(server's teacher). Teacher 0 of the job is the server's,
/// teacher 1 the client's own.
loss_ref two_teacher_objective(const teaching& with) {
  const distillation_rule rule{.form = distillation_form::kl, .temperature = with.temperature};
  return differentiable_objective(
      {.identity =
           fmt::format("two teachers {} {} {} {} {}", with.labels, with.own, with.server, with.temperature, with.old),
       .terms = {"cross_entropy", "own_distillation", "server_distillation"},
       .reads_label_smoothing = true},
      [=](const loss_rows& in) {
        std::vector<at::Tensor> terms{
            cross_entropy_rows(in.logits, in.labels, in.label_smoothing) * with.labels, {}, {}};
        if (with.own > 0.0)
          terms[1] = old_class_distillation(in.logits, in.teachers[1].logits, rule) * with.own;
        if (with.server > 0.0)
          terms[2] = old_class_distillation(in.logits, in.teachers[0].logits, rule) * with.server;
        return terms;
      });
}

enum class server_teacher : std::uint8_t { before_task, received };

struct lwf_2t_options {
  double labels = 1.0 / 3.0, own = 1.0 / 3.0, temperature = 2.0;
  server_teacher teacher2 = server_teacher::before_task;
};

class fed_lwf_2t final : public split_method {
public:
  void keys(key_table& table) override {
    split_method::keys(table);
    table.number("label_weight", options_.labels, {.low = 0.0, .high = 1.0},
                 "a: weight of cross-entropy; 1 is FedAvg.");
    table.number("own_weight", options_.own, {.low = 0.0, .high = 1.0},
                 "b: weight of teacher 1, the client's own; teacher 2, the server's, has 1 - a - b.");
    table.number("temperature", options_.temperature, {.low = 0.0, .open_low = true},
                 "T: temperature of both distillations.");
    table.choice(
        "teacher2", options_.teacher2,
        {{"before-task", server_teacher::before_task}, {"received", server_teacher::received}},
        "The server's teacher: its model at the end of the previous task, or the one at the start of the round.");
  }
  diagnostics check(const method_setup& setup) const override {
    auto errors = split_method::check(setup);
    if (options_.labels + options_.own > 1.0 + 1e-9)
      errors.push_back({"strategy.own_weight",
                        fmt::format("strategy.own_weight = {}: with label_weight = {} nothing is left for teacher 2; "
                                    "expected a sum of at most 1",
                                    options_.own, options_.labels)});
    return errors;
  }
  task<client_result> client_round(client_context& ctx, const broadcast& in) const override;

protected:
  bool needs_teacher() const override { return true; }

private:
  lwf_2t_options options_;
};

/// Names in the client's memory: its model of the previous task, and its newest model of this task.
constexpr const char *own_teacher = "own_teacher", *own_model = "own_model";

task<client_result> fed_lwf_2t::client_round(client_context& ctx, const broadcast& in) const {
  const bool begins = !feature_memory::saved_in(ctx.memory()).knows(in.info.task.value);
  auto looking = features_of_rows(ctx, in, net(), {.ratio = 0.0});
  const auto features = co_await looking;
  const std::vector<embedding_rows> parts{features.current()};
  auto job = training(ctx, in, rows_to_train(parts, net().features()));
  const auto* const teacher = ctx.memory().find(begins ? own_model : own_teacher);
  const auto old = in.info.current_classes.low;

  if (in.extra && old > 0) {
    teaching with{.labels = options_.labels,
                  .own = teacher ? options_.own : 0.0,
                  .server = std::max(0.0, 1.0 - options_.labels - (teacher ? options_.own : 0.0)),
                  .temperature = options_.temperature,
                  .old = old};
    if (with.labels < 1.0) // with a = 1 the job equals that of FedAvg, to the last bit
      job.objective = two_teacher_objective(with);
    job.add_teacher(options_.teacher2 == server_teacher::received ? in.weights : in.extra, {.classes = {0, old}});
    if (with.own > 0.0)
      job.add_teacher(weights_only(*teacher), {.classes = {0, old}});
  }

  auto learning = ctx.train(std::move(job));
  const auto learned = co_await learning;
  auto memory = std::make_shared<tensor_map>();
  features.save(*memory);
  memory->put(own_model, learned.weights->at(flat_weights).cpu());
  if (teacher)
    memory->put(own_teacher, *teacher);
  co_return client_result{.upload = learned.weights, .memory = memory, .rows = learned.rows_seen};
}

const strategy_registration fed_lwf_2t_line{
    {.name = "fed-lwf-2t",
     .summary = "LwF with two teachers, the client's own and the server's, on FedHAF's net (Usmanova et al. 2021)",
     .make = []() -> std::unique_ptr<strategy> { return std::make_unique<fed_lwf_2t>(); }}};

} // namespace
} // namespace mneme
