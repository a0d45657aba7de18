// SCAFFOLD: S. P. Karimireddy et al., "SCAFFOLD: Stochastic Controlled Averaging for Federated Learning", ICML 2020,
// Algorithm 1. The server has a control variate c, client i has c_i; all start at zero. From the received model x, a
// client takes K steps y_i = y_i - eta_l (g_i(y_i) - c_i + c). The key `control` selects its next control variate:
//     I:  c_i+ = g_i(x), the gradient over all of its rows, or
//     II: c_i+ = c_i - c + (x - y_i) / (K eta_l).
// It uploads y_i and c_i+ - c_i. From the uploads S of a round and N clients, the server computes
//     x = x + eta_g mean_S(y_i - x),  c = c + |S| / N mean_S(c_i+ - c_i).
//
// The public code (NIID-Bench) uses option II and weights uploads by rows (preset "niid-bench"). It draws initial
// control variates like initial weights; their effects cancel if all clients take part in every round.
//
// Ours: uploads have equal weights, as in the paper. c_i changes when the upload arrives, so a client that drops out
// keeps the old one. Control variates persist across tasks unless `reset` is set. Running statistics are averaged
// without control variates.
#include "strategies/baselines/local_steps.hpp"
#include "strategies/shared/averaging.hpp"
#include <ATen/TensorOperators.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros_like.h>
#include <fmt/format.h>
namespace mneme::scaffold_method {
namespace {

// Axes: P weights of the net.

constexpr const char *own_control = "control", *known_task = "task"; // client memory: c_i [P]; its task, [1] int64
constexpr const char* correction_name = "correction";                // auxiliary tensor: c - c_i [P]
constexpr std::string_view control_lead = "control.";                // prefix of tensor names in messages

enum class control_option : std::uint8_t { gradient, movement };
struct options {
  control_option control = control_option::movement;
  double server_rate = 1.0;
  bool reset = false;
};

/// Cross-entropy; c - c_i is added to the gradient of every step.
class corrected_loss final : public cross_entropy_loss {
public:
  std::string identity() const override { return "scaffold"; }
  bool regularizes() const override { return true; }
  void regularize(const at::Tensor& weights, const at::Tensor& /*start*/, std::int64_t offset,
                  const tensor_map* auxiliary, at::Tensor& gradients) const override {
    gradients.add_(auxiliary->at(correction_name).to(weights.device()).narrow(0, offset, weights.numel()));
  }
};

/// Converts control variates [P] to the tensors that are sent, and back. Each tensor of weights that is sent has a
/// tensor of control variates.
class control_variates {
public:
  control_variates() = default;
  explicit control_variates(const method_setup& setup)
      : transmitted_(setup.net, setup.trainable), corrected_(at::ones({setup.net->size()})) {
    for (const auto& entry : setup.net->layout())
      if (entry.buffer) // running statistics have no gradient
        corrected_.narrow(0, entry.offset, entry.size).zero_();
  }
  /// Returns [P], 1 for parameters and 0 for running statistics, on the device of `like`.
  [[nodiscard]] at::Tensor mask(const at::Tensor& like) const { return corrected_.to(like.device()); }
  void put(tensor_map& into, const at::Tensor& control) const {
    const auto parts = transmitted_.pick(control);
    for (const auto& [name, value] : *parts)
      into.put(std::string(control_lead) + name, value);
  }
  [[nodiscard]] at::Tensor in(const tensor_map& from) const {
    tensor_map parts;
    for (const auto& [name, value] : from)
      if (name.starts_with(control_lead))
        parts.put(name.substr(control_lead.size()), value);
    return transmitted_.complete(at::zeros_like(corrected_), parts);
  }
  [[nodiscard]] const transmitted_weights& traveling() const { return transmitted_; }

private:
  transmitted_weights transmitted_;
  at::Tensor corrected_; // [P] 1 for parameters, 0 for running statistics
};

// -- server half ------------------------------------------------------------------------------------------------------

class scaffold_server final : public averaging_server {
public:
  scaffold_server(const method_setup& setup, const options& options)
      : averaging_server(setup), options_(options), variates_(setup), clients_(static_cast<double>(setup.clients)),
        control_(at::zeros_like(weights())) {}

  task<task_plan> open_task(server_context&, const round_info& info) override {
    if (options_.reset) {
      control_ = at::zeros_like(control_);
      counted_from_ = info.round.value;
    }
    co_return task_plan{};
  }
  broadcast open_round(const round_info& info) override {
    auto sent = averaging_server::open_round(info);
    auto extra = std::make_shared<tensor_map>();
    variates_.put(*extra, control_);
    sent.extra = std::move(extra);
    return sent;
  }
  void fold(const delivery& in) override {
    if (in.rows == 0)
      return; // a client without rows has not trained
    auto learned = in;
    auto weights = std::make_shared<tensor_map>();
    for (const auto& [name, value] : *in.upload)
      if (!name.starts_with(control_lead))
        weights->put(name, value);
    learned.upload = std::move(weights);
    averaging_server::fold(learned);
    if (in.started_from.value < counted_from_)
      return; // ignore a late upload of a task before the reset
    changes_.add(variates_.in(*in.upload), 1.0);
    uploads_ += 1.0;
  }
  task<void> close_round(server_context&, const round_info&) override {
    const auto before = weights();
    average();
    if (options_.server_rate != 1.0) { // x + eta_g (mean - x); running statistics are the mean
      const auto rate = variates_.mask(before) * (options_.server_rate - 1.0) + 1.0;
      set_weights(before + (weights() - before) * rate);
    }
    if (changes_.empty())
      co_return;
    const auto mean = changes_.take();
    control_ = control_.to(mean.device()) + mean * (std::exchange(uploads_, 0.0) / clients_); // computes c + |S| / N
                                                                                              // mean
  }
  /// Counts the parameters twice, because a client uploads its weights and its control variate.
  std::map<std::string, double> summary_metrics() const override {
    auto known = averaging_server::summary_metrics();
    for (auto& [name, value] : known)
      value *= 2.0;
    return known;
  }
  void persist(archive& state) override {
    averaging_server::persist(state);
    state.frozen(control_)(changes_)(uploads_)(counted_from_);
  }

private:
  options options_;
  control_variates variates_;
  double clients_;
  at::Tensor control_;             // c [P]
  weighted_average changes_;       // mean of c_i+ - c_i in the open round
  double uploads_ = 0.0;           // |S|
  std::uint32_t counted_from_ = 0; // round in which c was last reset
};

// -- client half ------------------------------------------------------------------------------------------------------

class scaffold final : public averaging_method {
public:
  void keys(key_table& table) override {
    table.choice("control", options_.control, {{"I", control_option::gradient}, {"II", control_option::movement}},
                 "A client's control variate: its gradient at the received model (I), or derived from its change of "
                 "weights (II).");
    table.number("server_learning_rate", options_.server_rate, {.low = 0.0, .open_low = true},
                 "eta_g: learning rate of the server's step; with 1, the new model is the mean.");
    table.flag("reset", options_.reset, "Reset the control variates of clients and server when a task begins.");
  }
  std::vector<preset> presets() const override {
    return {{"paper", "uploads have equal weights", "[strategy]\nweighting = \"uniform\"\n"},
            {"niid-bench", "uploads are weighted by rows, as in NIID-Bench", "[strategy]\nweighting = \"samples\"\n"}};
  }
  /// Changes are measured from the broadcast of the round, and a client uploads two vectors.
  upload_content uploads() const override { return upload_content::weights_and_more; }
  method_needs needs() const override {
    return {.round_barrier = true, .defaults = "[strategy]\nweighting = \"uniform\"\n"};
  }
  diagnostics check(const method_setup& setup) const override;
  void prepare(const method_setup& setup) override {
    averaging_method::prepare(setup);
    variates_ = control_variates(setup);
  }
  task<client_result> client_round(client_context& ctx, const broadcast& in) const override;
  std::unique_ptr<server_half> make_server() const override {
    return std::make_unique<scaffold_server>(setup(), options_);
  }

private:
  [[nodiscard]] train_job corrected_training(const client_context& ctx, const broadcast& in, tensors_ref start,
                                             const at::Tensor& correction) const;
  [[nodiscard]] train_job gradient_at(const client_context& ctx, const broadcast& in, tensors_ref start) const;
  [[nodiscard]] at::Tensor own(const tensor_map& memory, const round_info& info) const;
  [[nodiscard]] client_result result_of(const train_output& trained, const at::Tensor& before, const at::Tensor& after,
                                        const round_info& info) const;

  options options_;
  control_variates variates_;
  loss_ref corrected_ = std::make_shared<corrected_loss>();
};

diagnostics scaffold::check(const method_setup& setup) const {
  auto errors = averaging_method::check(setup);
  if (options_.control == control_option::gradient)
    return errors;
  const std::string reason =
      "strategy.control = \"II\" reads a client's change of weights as a sum of gradients; expected ";
  if (setup.training.optimizer != optimizer_kind::sgd)
    errors.push_back({"training.optimizer", reason + "training.optimizer = \"sgd\", or strategy.control = \"I\""});
  if (setup.training.momentum != 0.0)
    errors.push_back({"training.momentum", fmt::format("training.momentum = {}: {}0, or strategy.control = \"I\"",
                                                       setup.training.momentum, reason)});
  if (setup.training.clip_norm != 0.0)
    errors.push_back({"training.clip_norm", fmt::format("training.clip_norm = {}: {}0, or strategy.control = \"I\"",
                                                        setup.training.clip_norm, reason)});
  return errors;
}

/// Returns c_i [P]: zeros before the first delivered round, and after a reset.
at::Tensor scaffold::own(const tensor_map& memory, const round_info& info) const {
  const auto* const known = memory.find(own_control);
  const bool forgotten = known && options_.reset &&
                         memory.at(known_task).item<std::int64_t>() != static_cast<std::int64_t>(info.task.value);
  return known && !forgotten ? *known : at::zeros({setup().net->size()}, at::kFloat);
}

train_job scaffold::corrected_training(const client_context& ctx, const broadcast& in, tensors_ref start,
                                       const at::Tensor& correction) const {
  auto job = local_training(setup(), ctx, in, {.samples = ctx.samples(), .classes = covered_classes(in.info)});
  job.start = std::move(start);
  auto auxiliary = std::make_shared<tensor_map>();
  auxiliary->put(correction_name, correction);
  job.auxiliary = std::move(auxiliary);
  job.objective = corrected_;
  return job;
}

/// g_i(x): one pass over all rows.
train_job scaffold::gradient_at(const client_context& ctx, const broadcast& in, tensors_ref start) const {
  auto job = local_training(setup(), ctx, in, {.samples = ctx.samples(), .classes = covered_classes(in.info)});
  job.start = std::move(start);
  job.options.epochs = 1;
  job.options.result = training_result::gradient;
  return job;
}

client_result scaffold::result_of(const train_output& trained, const at::Tensor& before, const at::Tensor& after,
                                  const round_info& info) const {
  auto upload = std::make_shared<tensor_map>(*variates_.traveling().pick(trained.weights->at(flat_weights)));
  variates_.put(*upload, after - before);
  auto kept = std::make_shared<tensor_map>();
  kept->put(own_control, after);
  kept->put(known_task, at::tensor({static_cast<std::int64_t>(info.task.value)}, at::kLong));
  return {.upload = std::move(upload), .memory = std::move(kept), .rows = trained.rows_seen};
}

task<client_result> scaffold::client_round(client_context& ctx, const broadcast& in) const {
  const auto start = full_weights(in.weights, in);
  const auto device = start->at(flat_weights).device();
  const auto server = variates_.in(*in.extra).to(device), before = own(ctx.memory(), in.info).to(device);
  auto job = corrected_training(ctx, in, start, server - before);
  const auto steps = local_steps(job.options, job.samples.size());
  const auto traveled = static_cast<double>(steps) * job.options.learning_rate; // K eta_l
  auto training = ctx.train(std::move(job));

  if (options_.control == control_option::gradient) {
    auto measuring = ctx.train(gradient_at(ctx, in, start));
    auto both = training & measuring;
    const auto [trained, measured] = co_await both;
    const auto after = measured.gradients.to(device) * variates_.mask(start->at(flat_weights));
    co_return result_of(trained, before, after, in.info);
  }

  const auto trained = co_await training;
  const auto& learned = trained.weights->at(flat_weights);
  if (traveled == 0.0) // nothing was trained, so c_i does not change
    co_return result_of(trained, before, before, in.info);
  const auto moved = (start->at(flat_weights).to(learned.device()) - learned) * variates_.mask(learned);
  const auto after = before - server + moved.to(device) / traveled;
  co_return result_of(trained, before, after, in.info);
}

const strategy_registration line{{.name = "scaffold",
                                  .summary = "FedAvg with control variates (SCAFFOLD, Karimireddy et al. 2020)",
                                  .make = []() -> std::unique_ptr<strategy> { return std::make_unique<scaffold>(); }}};

} // namespace
} // namespace mneme::scaffold_method
