// Fed-EWC: J. Kirkpatrick et al., "Overcoming catastrophic forgetting in neural networks", PNAS 2017, eq. 3, averaged
// by FedAvg (as in the comparisons of TARGET and STSA). For task t > 1, a client minimizes
//     CE over the classes of the task + lambda / 2 sum_i F_i (w_i - w*_i)^2
// w* is the model at the end of the previous task. F is the Fisher information: the mean of the squared gradients of
// single rows, averaged over clients.
//
// The official code (github.com/Yuqin-G/STSA, commit aaaa006, methods/ewc.py) squares the gradients of batch losses and
// limits the result. Over tasks it computes F = a F_old + (1 - a) F_new, where a is the share of old classes. It adds
// the penalty to a net that is not trained, so the penalty has no effect. After every local training, the computation
// of F runs in training mode and updates the running statistics.
//
// Ours: preset "paper" uses gradients of single rows (fisher = "sample") and adds F over tasks (fisher_over_tasks =
// "add"); the limit `fisher_max` is not in the paper. Preset "official" trains without the penalty (ewc_mode =
// "repo_noop") and updates the running statistics in a second pass (fisher_updates_batch_norm). The defaults use the
// penalty, gradients of batches, the limit and the weighted sum over tasks.
#include "strategies/baselines/old_model_distillation.hpp"
#include "strategies/shared/quadratic_penalty.hpp"
#include <ATen/TensorOperators.h>
#include <fmt/format.h>
namespace mneme {
namespace {

constexpr const char *fisher_name = "fisher", *anchor_name = "anchor";

enum class ewc_mode : std::uint8_t { faithful, repo_noop };
enum class fisher_part : std::uint8_t { batch, sample };
enum class fisher_sum : std::uint8_t { blend, add };
struct ewc_options {
  fisher_part fisher = fisher_part::batch;
  fisher_sum over_tasks = fisher_sum::blend;
  ewc_mode mode = ewc_mode::faithful;
  bool updates_running_stats = false;
  double lambda = 1000.0, fisher_max = 1e-4;
};

/// Averages the weights, and the Fisher information that clients upload in the last round of a task.
class ewc_server final : public averaging_server {
public:
  ewc_server(const method_setup& setup, fisher_sum over_tasks) : averaging_server(setup), over_tasks_(over_tasks) {}
  task<task_plan> open_task(server_context&, const round_info& info) override {
    if (!fresh_.empty()) {
      const auto known = static_cast<double>(before_.size()), seen = static_cast<double>(seen_.size());
      const auto mean = fresh_.take();
      if (!fisher_.defined())
        fisher_ = mean;
      else
        fisher_ =
            over_tasks_ == fisher_sum::add ? fisher_ + mean : fisher_ * (known / seen) + mean * (1.0 - known / seen);
      auto hold = std::make_shared<tensor_map>();
      hold->put(fisher_name, fisher_);
      hold->put(anchor_name, weights());
      hold_ = std::move(hold);
    }
    before_ = seen_;
    seen_ = info.seen_classes;
    co_return task_plan{};
  }
  broadcast open_round(const round_info& info) override {
    auto sent = averaging_server::open_round(info);
    sent.extra = hold_;
    return sent;
  }
  void fold(const delivery& in) override {
    averaging_server::fold(in);
    if (const auto* fisher = in.upload->find(fisher_name); fisher && in.rows > 0)
      fresh_.add(*fisher, weight_of(in));
  }
  void persist(archive& state) override {
    averaging_server::persist(state);
    state(fresh_).frozen(fisher_)(hold_)(before_.low)(before_.high)(seen_.low)(seen_.high);
  }

private:
  fisher_sum over_tasks_;
  weighted_average fresh_; // Fisher information of the open task
  at::Tensor fisher_;      // [P] Fisher information of all finished tasks, or undefined
  tensors_ref hold_;       // F and w* for the clients of the open task; null in the first task
  class_range before_, seen_;
};

class fed_ewc final : public averaging_method {
public:
  void keys(key_table& table) override {
    table.choice("ewc_mode", options_.mode, {{"faithful", ewc_mode::faithful}, {"repo_noop", ewc_mode::repo_noop}},
                 "Penalty: as published, or without effect as in the official code.");
    table.number("ewc_lambda", options_.lambda, {.low = 0.0}, "lambda: weight of the penalty.");
    table.choice("fisher", options_.fisher, {{"batch", fisher_part::batch}, {"sample", fisher_part::sample}},
                 "Gradients to square: of a batch's loss as in the official code, or of each row's loss.");
    table.choice("fisher_over_tasks", options_.over_tasks, {{"blend", fisher_sum::blend}, {"add", fisher_sum::add}},
                 "Combination of Fisher information over tasks: blended by number of classes as in the official code, "
                 "or added.");
    table.omit_default_from_digest();
    table.flag("fisher_updates_batch_norm", options_.updates_running_stats,
               "With ewc_mode = \"repo_noop\", clients pass over their rows in training mode after training, which "
               "updates running statistics, as in the official code.");
    table.omit_default_from_digest();
    table.number("fisher_max", options_.fisher_max, {.low = 0.0},
                 "Upper bound of an element of the Fisher information.");
  }
  std::vector<preset> presets() const override {
    return {{"paper", "the penalty as published, with Fisher information of rows, added over tasks; its bound is ours",
             "[strategy]\newc_mode = \"faithful\"\nfisher = \"sample\"\nfisher_over_tasks = \"add\"\n"},
            {"official",
             "the official code, in which the penalty has no effect and the Fisher pass updates running statistics",
             "[strategy]\newc_mode = \"repo_noop\"\nfisher_updates_batch_norm = true\nweighting = \"uniform\"\n" +
                 std::string(public_training) + "weight_decay = 0.0\n"}};
  }
  /// Clients run a second job in the last round of a task and upload its Fisher information.
  method_needs needs() const override { return {.round_barrier = true}; }
  upload_content uploads() const override { return upload_content::weights_and_more; }
  void prepare(const method_setup& setup) override {
    averaging_method::prepare(setup);
    penalised_ = quadratic_objective(
        fmt::format("ewc {}", options_.lambda),
        {{.term = "ewc", .importance = fisher_name, .anchor = anchor_name, .strength = options_.lambda}});
  }
  task<client_result> client_round(client_context& ctx, const broadcast& in) const override;
  std::unique_ptr<server_half> make_server() const override {
    return std::make_unique<ewc_server>(setup(), options_.over_tasks);
  }

protected:
  class_range covered_classes(const round_info& info) const override { return info.current_classes; }
  void adjust(train_job& job, const broadcast& in) const override {
    if (!in.extra || options_.mode == ewc_mode::repo_noop)
      return;
    job.auxiliary = in.extra;
    job.objective = penalised_;
  }

private:
  [[nodiscard]] train_job fisher_job(const client_context& ctx, const broadcast& in, const tensors_ref& at) const;
  [[nodiscard]] train_job fisher_request(const client_context& ctx, const broadcast& in, const tensors_ref& at) const;

  ewc_options options_;
  loss_ref penalised_; // created once, in prepare()
};

/// Returns the job that computes the Fisher information at the weights `at`, over all classes seen so far.
train_job fed_ewc::fisher_job(const client_context& ctx, const broadcast& in, const tensors_ref& at) const {
  auto job = local_training(setup(), ctx, in, {.samples = ctx.samples(), .classes = in.info.seen_classes});
  job.start = at;
  job.options.epochs = 1;
  job.options.result = training_result::squared_gradients;
  job.options.label_smoothing = 0.0; // label smoothing would change the likelihood
  if (options_.fisher == fisher_part::sample)
    job.options.batch_rows = 1;
  return job;
}

/// Returns a job of one epoch at learning rate 0, which changes only the running statistics.
train_job fed_ewc::fisher_request(const client_context& ctx, const broadcast& in, const tensors_ref& at) const {
  auto job = local_training(setup(), ctx, in, {.samples = ctx.samples(), .classes = in.info.seen_classes});
  job.start = at;
  job.options.epochs = 1;
  job.options.learning_rate = 0.0;
  job.stream.visit += std::uint32_t{1} << 24; // no round has this visit number, so the pass gets its own shuffle
  return job;
}

task<client_result> fed_ewc::client_round(client_context& ctx, const broadcast& in) const {
  auto training = averaging_method::client_round(ctx, in);
  auto trained = co_await training;
  const bool last = in.info.round_of_task + 1 == in.info.rounds_of_task && in.info.task.value + 1 < setup().tasks;
  if (options_.mode == ewc_mode::repo_noop && options_.updates_running_stats &&
      setup().trainable == trainable_part::all) {
    auto looking = ctx.train(fisher_request(ctx, in, trained.upload));
    const auto looked = co_await looking;
    trained.upload = looked.weights;
  }
  if (!last || options_.mode == ewc_mode::repo_noop)
    co_return trained;
  auto own = full_weights(trained.upload, in);
  auto measuring = ctx.train(fisher_job(ctx, in, own));
  auto measured = co_await measuring;
  auto upload = std::make_shared<tensor_map>(*trained.upload);
  upload->put(fisher_name, measured.gradients.clamp_max(options_.fisher_max));
  trained.upload = upload;
  co_return trained;
}

const strategy_registration fed_ewc_line{
    {.name = "fed-ewc",
     .summary = "FedAvg with elastic weight consolidation between tasks (Kirkpatrick et al. 2017, EWC)",
     .make = []() -> std::unique_ptr<strategy> { return std::make_unique<fed_ewc>(); }}};

} // namespace
} // namespace mneme
