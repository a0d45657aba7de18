#include "strategies/lga/gradient_compensation.hpp"
#include "strategies/shared/exemplar_memory.hpp"
#include "strategies/shared/linear_head.hpp"
#include "strategies/shared/training_keys.hpp"
#include <ATen/ATen.h>
#include <algorithm>
#include <fmt/format.h>
namespace mneme {
namespace {

/// Returns the positions of the rows of a class.
at::Tensor rows_of_class(const at::Tensor& labels, std::int64_t label) {
  return (labels == label).nonzero().squeeze(1);
}

} // namespace

// -- client memory ----------------------------------------------------------------------------------------------------

/// A client's memory. It contains row numbers of the data set. A client keeps the rows of a task until it detects the
/// next task.
struct gradient_compensation_method::client_memory {
  row_list current{};           ///< Rows at the last call of hold().
  row_list pending{};           ///< Rows of earlier tasks that wait for exemplar selection.
  row_list exemplars{};         ///< Grouped by class, in order of selection.
  double entropy = 0.0;         ///< Mean entropy of the previous round, in nats.
  bool is_waiting = false;      ///< True: the rows have changed, and the client has not detected it yet.
  bool is_over = false;         ///< True: the task of `current` is over, and only its exemplars are kept.
  std::uint32_t known_task = 0; ///< Task of the last detection with an oracle, from 1; 0: none.

  static client_memory loaded(const tensor_map& from) {
    client_memory memory;
    if (from.empty())
      return memory;
    memory.current = to_row_list(from.find("current"));
    memory.pending = to_row_list(from.find("pending"));
    memory.exemplars = to_row_list(from.find("exemplars"));
    memory.entropy = from.at("entropy").item<double>();
    memory.is_waiting = from.at("is_waiting").item<std::int64_t>() != 0;
    memory.is_over = from.at("is_over").item<std::int64_t>() != 0;
    memory.known_task = static_cast<std::uint32_t>(from.at("known_task").item<std::int64_t>());
    return memory;
  }
  [[nodiscard]] memory_ref saved() const {
    auto fields = std::make_shared<tensor_map>();
    fields->put("current", at::tensor(current, at::kLong));
    fields->put("pending", at::tensor(pending, at::kLong));
    fields->put("exemplars", at::tensor(exemplars, at::kLong));
    fields->put("entropy", at::tensor(entropy, at::kDouble));
    fields->put("is_waiting", at::tensor(std::int64_t{is_waiting}, at::kLong));
    fields->put("is_over", at::tensor(std::int64_t{is_over}, at::kLong));
    fields->put("known_task", at::tensor(std::int64_t{known_task}, at::kLong));
    return fields;
  }

  /// Sets the current rows. If they have changed, the previous ones wait for exemplar selection.
  void hold(const row_list& rows, std::map<std::string, double>& counts) {
    if (rows == current)
      return;
    pending = std::exchange(is_over, false) ? row_list{} : std::move(current);
    current = rows;
    is_waiting = true;
    counts["transitions_missed"] += 1.0; // counted until the transition is detected
  }
  /// Counts a detected transition. It is correct if the rows have changed, and false otherwise.
  void notice(std::map<std::string, double>& counts) {
    if (std::exchange(is_waiting, false)) {
      counts["transitions_missed"] -= 1.0;
      counts["transitions_detected"] += 1.0;
    } else {
      counts["transitions_false"] += 1.0;
    }
  }
  /// Adds exemplars of the pending rows to the memory. All classes share the memory, so each class keeps fewer.
  void memorize(const dataset& source, const extract_output& encoded, std::int64_t rows_max, exemplar_choice how) {
    exemplars = update_exemplars(source, exemplars, pending, encoded.features, {.rows_max = rows_max, .choice = how});
    pending.clear();
  }
};

/// Result of a client's task detection.
struct gradient_compensation_method::finding {
  client_memory memory{};
  bool begins = false; ///< True: the client has detected a new task.
  bool rests = false;  ///< True: the client trains on exemplars only.
  std::map<std::string, double> counts{
      {"transitions_detected", 0.0}, {"transitions_missed", 0.0}, {"transitions_false", 0.0}};
};

// -- task detection and learning rates --------------------------------------------------------------------------------

namespace {

constexpr double entropy_floor = 1e-5;

} // namespace

double mean_entropy(const at::Tensor& logits) {
  if (logits.size(0) == 0)
    return 0.0;
  const auto p = at::softmax(logits.cpu().to(at::kDouble), 1);
  return -(p * (p + entropy_floor).log()).sum(1).mean().item<double>();
}

namespace {

constexpr std::int64_t period = 200; // in epochs, as in the official code

double factor_from(std::int64_t epoch_of_task) {
  return epoch_of_task >= 180 ? 1.0 / 125 : epoch_of_task >= 150 ? 1.0 / 25 : epoch_of_task >= 100 ? 1.0 / 5 : 1.0;
}

} // namespace

std::vector<rate_stretch> rates_of_round(rate_schedule kind, std::int64_t round_of_task, std::int64_t epochs) {
  std::vector<rate_stretch> stretches;
  double factor = 1.0;
  for (std::int64_t e = 0; e < epochs; ++e) {
    const auto at = (round_of_task * epochs + e) % period;
    const bool decays = at == 100 || at == 150 || at == 180;
    if (kind == rate_schedule::persistent_decay || (kind == rate_schedule::code_quirk && decays))
      factor = factor_from(at);
    if (!stretches.empty() && stretches.back().factor == factor)
      ++stretches.back().epochs;
    else
      stretches.push_back({.epochs = 1, .factor = factor});
  }
  return stretches;
}

// -- client half ------------------------------------------------------------------------------------------------------

/// Task detection (Dong et al. 2022, section 4.2). The mean entropy over the client's rows rises if they contain
/// classes that the model was not trained on. After a detection, exemplars of the previous task are selected. The
/// entropy is computed without augmentation; the official code augments the rows, which makes it noisy.
task<gradient_compensation_method::finding> gradient_compensation_method::look(client_context& ctx, const broadcast& in,
                                                                               tensors_ref weights) const {
  finding now;
  now.memory = client_memory::loaded(ctx.memory());
  auto& memory = now.memory;
  memory.hold(*ctx.samples().rows, now.counts);
  const auto held = memory.is_over ? view_of(ctx.samples(), memory.exemplars) : ctx.samples();

  auto looking = ctx.extract({.net = setup().net, .weights = weights, .samples = held});
  const auto answered = co_await looking;
  const auto entropy = mean_entropy(answered.logits.narrow(1, in.info.seen_classes.low, in.info.seen_classes.size()));
  now.begins =
      begins_task(std::exchange(memory.entropy, entropy), entropy, options_.threshold, options_.threshold_included);
  if (setup().oracle)
    now.begins = std::exchange(memory.known_task, in.info.task.value + 1) != in.info.task.value + 1;
  if (now.begins)
    memory.notice(now.counts);
  if (is_on_old_task(ctx, in) && !memory.is_over) {
    memory.pending.insert(memory.pending.end(), memory.current.begin(), memory.current.end());
    memory.is_over = true;
  }
  now.rests = memory.is_over;
  if ((now.begins || memory.is_over) && !memory.pending.empty()) {
    extract_job encoding{.net = setup().net, .weights = weights, .samples = view_of(ctx.samples(), memory.pending)};
    encoding.logits = false;
    auto encode = ctx.extract(std::move(encoding));
    const auto encoded = co_await encode;
    memory.memorize(*ctx.samples().source, encoded, options_.memory_rows, options_.choice);
  }
  co_return now;
}

/// True if the client belongs to the paper's group Z_o, which has exemplars only: all its rows belong to tasks before
/// the newest task of the head.
bool gradient_compensation_method::is_on_old_task(const client_context& ctx, const broadcast& in) const {
  const auto& rows = *ctx.samples().rows;
  if (options_.old_clients == old_client_rows::full || rows.empty())
    return false;
  const auto newest = task_of_class(in.info.seen_classes.high - 1);
  return std::all_of(rows.begin(), rows.end(),
                     [&](std::int64_t row) { return task_of_class(ctx.samples().source->label(row)) < newest; });
}

/// True if the client trains on exemplars only. This happens in runs that draw the group of such clients in every
/// round.
bool gradient_compensation_method::uses_exemplars_only(const client_context& ctx, const client_memory& memory) const {
  return options_.regroup == regrouping::round && !memory.exemplars.empty() &&
         rng_stream(ctx.stream(group_draw)).uniform() < setup().keep_task_share;
}

std::int64_t gradient_compensation_method::task_of_class(std::int64_t label) const {
  const auto& tasks = setup().task_classes;
  const auto holder = std::find_if(tasks.begin(), tasks.end(),
                                   [&](const class_range& task) { return task.low <= label && label < task.high; });
  return holder - tasks.begin();
}

/// Local training on the current rows and all exemplars, with an old model as teacher. The teacher is the best model of
/// the latest task in a round in which the client detects a new task, and the best model of the task before in all
/// other rounds.
train_job gradient_compensation_method::training(const client_context& ctx, const broadcast& in,
                                                 const finding& after) const {
  const auto& memory = after.memory;
  const auto fresh = after.rests ? row_list{} : memory.current;
  auto rows = fresh;
  rows.insert(rows.end(), memory.exemplars.begin(), memory.exemplars.end());
  auto job =
      local_training(setup(), ctx, in, {.samples = view_of(ctx.samples(), rows), .classes = in.info.seen_classes});
  job.objective = objective();
  const auto models = read_advice(in.advice);
  const auto& teacher = after.begins ? models.latest : models.before;
  if (teacher.weights)
    job.add_teacher(teacher.weights, {.classes = {0, teacher.classes}});
  if (memory.exemplars.empty())
    return job; // without exemplars all rows have weight 1

  const auto& source = *ctx.samples().source;
  const auto old = labels_in(source, memory.exemplars), current = labels_in(source, fresh);
  forgetting_context known{.group_of_class = std::vector<std::int64_t>(static_cast<std::size_t>(setup().classes), -1)};
  for (const auto label : old)
    known.group_of_class.at(static_cast<std::size_t>(label)) = task_of_class(label);
  known.old_tasks = task_of_class(in.info.seen_classes.high - 1); // number of tasks before the newest one in the head
  const auto olds = static_cast<double>(old.size()), news = static_cast<double>(current.size());
  if (options_.exponent == exponent_rule::own_classes)
    known.exponent = olds / (olds + news);
  else if (options_.exponent == exponent_rule::tasks)
    known.exponent = static_cast<double>(known.old_tasks) / static_cast<double>(known.old_tasks + 1);
  job.auxiliary = to_auxiliary(known);
  return job;
}

/// The prototype of each class: the row whose feature is nearest to the class mean.
sample_view gradient_compensation_method::prototypes_of(const client_context& ctx, const at::Tensor& features) const {
  const auto& rows = *ctx.samples().rows;
  row_list labels, chosen;
  for (const auto row : rows)
    labels.push_back(ctx.samples().source->label(row));
  const auto label_of_row = at::tensor(labels, at::kLong);
  const auto host_features = features.cpu();
  for (const auto label : std::set<std::int64_t>(labels.begin(), labels.end())) {
    const auto places = rows_of_class(label_of_row, label);
    const auto nearest = choose_exemplars(host_features.index_select(0, places), 1, exemplar_choice::rank).front();
    chosen.push_back(rows[static_cast<std::size_t>(places[nearest].item<std::int64_t>())]);
  }
  return view_of(ctx.samples(), std::move(chosen));
}

program_job gradient_compensation_method::prototype_job(const client_context& ctx, const broadcast& in,
                                                        const tensors_ref& weights,
                                                        const extract_output& encoded) const {
  auto tensors = std::make_shared<tensor_map>();
  tensors->put("encoder", in.initial_payload->at("encoder"));
  tensors->put("weights", weights->at(flat_weights));
  tensors->put("seen", at::tensor(in.info.seen_classes.high, at::kLong));
  if (options_.perturbs && options_.perturbation == prototype_perturbation::latent)
    tensors->put("variances", variances_by_class(encoded.features, encoded.labels));
  const auto chosen = prototypes_of(ctx, encoded.features);
  return {.body = prototypes_,
          .in = tensors,
          .samples = chosen,
          .stream = ctx.stream(perturbation_draw),
          .rows = 50 * chosen.size()};
}

task<client_result> gradient_compensation_method::client_round(client_context& ctx, const broadcast& in) const {
  const auto start = full_weights(in.weights, in);
  finding after;
  after.memory = client_memory::loaded(ctx.memory());
  after.rests = uses_exemplars_only(ctx, after.memory);
  if (!after.rests) {
    auto looking = look(ctx, in, start);
    after = co_await looking;
  }

  // The official rates change within a round, so each stretch of equal rates is a separate job. Clients derive the
  // round of the task from the round number.
  auto job = training(ctx, in, after);
  job.start = start;
  const auto rate = job.options.learning_rate;
  const auto stretches = rates_of_round(options_.rates, in.info.round.value % setup().rounds.per_task,
                                        std::max<std::int64_t>(job.options.epochs, 1));
  client_result result;
  for (std::uint32_t i = 0; i < stretches.size(); ++i) {
    auto stretch = job;
    stretch.options.epochs = job.options.epochs == 0 ? 0 : stretches[i].epochs;
    stretch.options.learning_rate = rate * stretches[i].factor;
    stretch.stream.visit += i << 24; // no round has the visit numbers of later stretches, so each gets its own shuffle
    auto run = ctx.train(std::move(stretch));
    const auto trained = co_await run;
    job.start = trained.weights;
  }
  result.upload = job.start;
  result.rows = job.samples.size();

  // A client that detects a task sends the gradients of its prototypes in the encoder to the proxy, without labels.
  if (after.begins && !after.rests && options_.proxy.scores()) {
    extract_job encoding{.net = setup().net, .weights = result.upload, .samples = ctx.samples()};
    encoding.logits = false;
    auto encode = ctx.extract(std::move(encoding));
    const auto encoded = co_await encode;
    auto leave = ctx.run(prototype_job(ctx, in, result.upload, encoded));
    const auto left = co_await leave;
    result.to_proxy = left.out;
  }
  result.memory = after.memory.saved();
  result.counts = after.counts;
  co_return result;
}

/// Task detection without training, for clients outside the cohort: updates entropy and exemplars.
task<client_result> gradient_compensation_method::client_observe(client_context& ctx, const broadcast& in) const {
  auto looking = look(ctx, in, full_weights(in.weights, in));
  const auto after = co_await looking;
  client_result result;
  result.memory = after.memory.saved();
  result.counts = after.counts;
  co_return result;
}

// -- server half ------------------------------------------------------------------------------------------------------

namespace {

/// Averages uploads and sends the encoder to each client once, as initial payload.
class compensating_server final : public averaging_server {
public:
  compensating_server(const method_setup& setup, std::shared_ptr<const shared_encoder> known,
                      const gradient_compensation_options& settings)
      : averaging_server(setup), clients_(setup.clients), pool_(settings.pool), known_(std::move(known)) {
    if (settings.rates == rate_schedule::code_quirk && (setup.rounds.per_task != 10 || setup.training.epochs != 20))
      warning_ = fmt::format("strategy.rates = \"official\" assumes 10 rounds of 20 epochs; rounds.per_task = {} and "
                             "training.epochs = {} shift its decays",
                             setup.rounds.per_task, setup.training.epochs);
    auto once = std::make_shared<tensor_map>();
    once->put("encoder", known_->weights);
    once_ = once;
  }
  task<task_plan> open_task(server_context& ctx, const round_info& info) override {
    if (info.task.value == 0 && !warning_.empty())
      ctx.warn(warning_);
    task_plan plan;
    plan.observers = clients_;
    plan.first_enrolled_only = pool_ == cohort_pool::fixed;
    co_return plan;
  }
  broadcast open_round(const round_info& info) override {
    auto sent = averaging_server::open_round(info);
    sent.initial_payload = once_;
    return sent;
  }

private:
  std::int64_t clients_;
  cohort_pool pool_;
  std::shared_ptr<const shared_encoder> known_;
  std::string warning_;
  tensors_ref once_;
};

} // namespace

std::unique_ptr<server_half> gradient_compensation_method::make_server() const {
  return std::make_unique<compensating_server>(setup(), known_, options_);
}

std::unique_ptr<proxy_half> gradient_compensation_method::make_proxy() const {
  return std::make_unique<prototype_proxy>(setup().net, setup().seed, known_, options_.proxy);
}

// -- the method -------------------------------------------------------------------------------------------------------

void gradient_compensation_method::prepare(const method_setup& setup) {
  options_ = options();
  averaging_method::prepare(setup);
  const gradient_encoder encoder(setup.shape, setup.classes);
  known_ = std::make_shared<const shared_encoder>(
      shared_encoder{.encoder = encoder, .weights = encoder.drawn({.seed = setup.seed, .purpose = encoder_draw})});
  prototypes_ =
      prototype_program(setup.net, encoder, options_.perturbs ? options_.perturbation : prototype_perturbation::none);
}

diagnostics gradient_compensation_method::check(const method_setup& setup) const {
  auto errors = averaging_method::check(setup);
  append(errors, reject_label_smoothing(setup, "its loss weights rows by the gradients of their unsmoothed labels"));
  const auto settings = options();
  for (std::size_t t = 1; t < setup.task_classes.size(); ++t)
    if (setup.task_classes[t].low != setup.task_classes[t - 1].high) {
      errors.push_back({"tasks.kind", "tasks.kind: the method compensates for forgotten classes, but these tasks "
                                      "repeat their classes; expected \"class-incremental\""});
      break;
    }
  if (!setup.has_images())
    errors.push_back(
        {"data.name",
         "the proxy reconstructs images from gradients, but the data are rows of tokens or numbers; expected images"});
  if (setup.trainable != trainable_part::all)
    errors.push_back(
        {"model.trainable", "model.trainable: the method trains and compares whole nets; expected \"all\""});
  else if (!transmitted_weights(setup.net, setup.trainable).whole())
    errors.push_back(
        {"model.name", fmt::format("model.name: parts of '{}' are frozen, but the method trains and compares whole "
                                   "nets; expected a net that is trained as a whole, without model.adapter",
                                   setup.net->identity())});
  for (auto& finding : without_linear_head(*setup.net, "the proxy scores features with the head"))
    errors.push_back(std::move(finding));
  if (settings.memory_rows < setup.classes)
    errors.push_back({"strategy.memory",
                      fmt::format("strategy.memory = {}: fewer exemplars than classes of the run; expected at least {}",
                                  settings.memory_rows, setup.classes)});
  if (settings.proxy.first_scored >= setup.rounds.per_task && setup.rounds.per_task > 1)
    errors.push_back({"strategy.proxy_init",
                      fmt::format("strategy.proxy_init = {}: no model of a task would be scored; expected less than "
                                  "rounds.per_task = {}",
                                  settings.proxy.first_scored, setup.rounds.per_task)});
  if (settings.proxy.inversion.kept > settings.proxy.inversion.steps)
    errors.push_back({"strategy.images_per_gradient",
                      fmt::format("strategy.images_per_gradient = {}: the last iterates are the images; expected at "
                                  "most strategy.reconstruction_steps = {}",
                                  settings.proxy.inversion.kept, settings.proxy.inversion.steps)});
  return errors;
}

void gradient_compensation_method::shared_keys(key_table& table, gradient_compensation_options& to) {
  table.number("threshold", to.threshold, {.low = 0.0},
               "Increase of a client's mean entropy, in nats, at which the client detects a new task.");
  table.integer("memory", to.memory_rows, {.low = 1, .high = 100'000'000}, "Maximum number of exemplars per client.");
  table.choice("exemplars", to.choice,
               {{"greedy", exemplar_choice::greedy},
                {"rank", exemplar_choice::rank},
                {"duplicates", exemplar_choice::duplicates}},
               "Herding, the rows nearest to the class mean, or herding that may choose a row again (official code).");
  table.choice("rates", to.rates,
               {{"scenario", rate_schedule::scenario},
                {"official", rate_schedule::code_quirk},
                {"persistent-decay", rate_schedule::persistent_decay}},
               "Learning rates: those of [training]; or divided after 100, 150 and 180 epochs of a task, only for the "
               "rest of the round (official code) or persistently.");
  table.integer("reconstruction_steps", to.proxy.inversion.steps, {.low = 1, .high = 100'000},
                "L-BFGS steps per gradient, each of up to 20 evaluations.");
  table.number("reconstruction_rate", to.proxy.inversion.learning_rate, {.low = 0.0, .open_low = true},
               "Learning rate of the L-BFGS steps.");
  table.integer("images_per_gradient", to.proxy.inversion.kept, {.low = 1, .high = 1000},
                "Number of last iterates that the proxy keeps as images.");
  table.integer("proxy_init", to.proxy.first_scored, {.low = 0, .high = 1'000'000},
                "Number of first rounds of a task whose models the proxy does not score.");
  table.choice("best_reset", to.proxy.reset,
               {{"every-task", score_reset::every_task},
                {"second-task", score_reset::second_task},
                {"never", score_reset::never}},
               "When the best score of earlier tasks is reset; in the official code LGA resets it once, GLFC never.");
  table.choice("perturbation", to.perturbation,
               {{"pixels", prototype_perturbation::pixels}, {"latent", prototype_perturbation::latent}},
               "Loss with which prototypes are perturbed: the net's binary cross-entropy (official code), or the "
               "cross-entropy of noisy features (paper).");
  table.omit_default_from_digest();
  table.choice("old_clients", to.old_clients,
               {{"full", old_client_rows::full}, {"exemplars", old_client_rows::exemplars}},
               "Training data of clients that stay at an old task: all rows of this task (official code), or exemplars "
               "(paper).");
  table.omit_default_from_digest();
  table.choice("regroup", to.regroup, {{"task", regrouping::task}, {"round", regrouping::round}},
               "When clients that keep old classes are drawn (share tasks.keep_task_share): once per task (official "
               "code), or in each round (paper), where they train on exemplars only.");
  table.omit_default_from_digest();
  table.choice(
      "pool", to.pool, {{"growing", cohort_pool::growing}, {"fixed", cohort_pool::fixed}},
      "Clients from which cohorts are drawn: all enrolled ones, or only those of the first task (LGA's code).");
  table.omit_default_from_digest();
}

} // namespace mneme
