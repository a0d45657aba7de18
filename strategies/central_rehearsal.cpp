// Rehearsal by one learner who has all data of the current task: the centralised study of FIL-VER (arXiv 2110.09695,
// section 5.1), and the ceiling of its federated one.
//
//   none      nothing is rehearsed
//   naive     raw rows are kept and rehearsed
//   ebr       embeddings of a frozen encoder are kept and rehearsed, `multiplier` times as many
//   noise     the same with vectors of a random encoder; reading "a": the classifier is trained and tested behind the
//             frozen encoder; reading "b": behind the random one, which is then nobody else's
//   offline   all tasks at once
// With a frozen encoder, naive and ebr are one and the same (multiplier 1); the paper plots them as different, so what
// rehearses no embeddings trains encoder and classifier together unless `encoder` says otherwise.
#include "strategies/shared/averaging.hpp"
#include "strategies/shared/embedding_rows.hpp"
#include "strategies/shared/frozen_encoder.hpp"
#include "strategies/shared/ver_loss.hpp"
#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <algorithm>
#include <fmt/format.h>
namespace mneme {
namespace {

// Axes: n rows of a task, m rows kept of it, F features of the encoder.

enum draws : std::uint32_t { kept_draw = first_method_purpose, held_out_draw, noise_draw };
enum class rehearsal_kind : std::uint8_t { none, naive, noise, ebr, offline };
enum class encoder_mode : std::uint8_t { by_system, frozen, trained };
enum class encoder_rows : std::uint8_t { held_out, task_1 };
enum class noise_reading : std::uint8_t { other_encoder, front_end };

struct options {
  rehearsal_kind system = rehearsal_kind::ebr;
  encoder_mode encoder_is = encoder_mode::by_system;
  encoder_rows encoder_data = encoder_rows::held_out;
  double held_out = 0.1;
  frozen_encoder::options encoder{};
  double rehearsal_ratio = 0.1;
  std::int64_t ebr_multiplier = 1;
  double ebr_repeat_cap = 1.0; // times what there is
  noise_reading noise = noise_reading::other_encoder;

  [[nodiscard]] bool frozen() const {
    if (encoder_is != encoder_mode::by_system)
      return encoder_is == encoder_mode::frozen;
    return system == rehearsal_kind::ebr || system == rehearsal_kind::noise;
  }
  /// Whether the server trains the encoder first.
  [[nodiscard]] bool pretrains() const {
    return frozen() && !(system == rehearsal_kind::noise && noise == noise_reading::front_end);
  }
  [[nodiscard]] bool keeps() const { return system != rehearsal_kind::none && system != rehearsal_kind::offline; }
  [[nodiscard]] double share() const {
    return rehearsal_ratio * static_cast<double>(system == rehearsal_kind::ebr ? ebr_multiplier : 1);
  }
};

/// What both halves know.
struct plan_of_run {
  options with{};
  method_setup whole{}, learnt{}; // of the run, and of what is learnt in its rounds
  std::shared_ptr<const embedding_model> net{};
  tensors_ref noise_encoder{}; // weights of noise "a"

  /// Whether a row of the data set is one that the encoder alone is trained on. Decided row by row.
  [[nodiscard]] bool is_held_out(std::int64_t row) const {
    if (!with.pretrains() || with.encoder_data != encoder_rows::held_out)
      return false;
    rng_stream draw({.seed = whole.seed, .what = held_out_draw, .index = static_cast<std::uint64_t>(row)});
    return draw.uniform() < with.held_out;
  }
  [[nodiscard]] sample_view rows_of(const sample_view& from, bool held_out) const {
    auto rows = std::make_shared<std::vector<std::int64_t>>();
    std::copy_if(from.rows->begin(), from.rows->end(), std::back_inserter(*rows),
                 [&](std::int64_t row) { return is_held_out(row) == held_out; });
    return {.source = from.source, .rows = std::move(rows)};
  }
};

// -- server half ------------------------------------------------------------------------------------------------------

/// Trains the encoder if there is to be one, and takes over what the learner sends.
class central_server final : public averaging_server {
public:
  explicit central_server(std::shared_ptr<const plan_of_run> run)
      : averaging_server(run->learnt), run_(std::move(run)), encoder_(run_->whole, run_->with.encoder) {}

  task<task_plan> open_task(server_context& ctx, const round_place& where) override {
    if (where.task.value == 0 && run_->with.pretrains()) {
      auto training = encoder_.train(ctx, encoder_samples(ctx.rows()), {0, run_->whole.classes});
      co_await training;
    }
    co_return task_plan{};
  }
  broadcast open_round(const round_place& where) override {
    auto made = averaging_server::open_round(where);
    if (run_->with.frozen())
      made.first_contact = encoder_.weights();
    return made;
  }
  void persist(archive& state) override {
    averaging_server::persist(state);
    state(encoder_);
  }
  predictor predict() const override {
    return run_->with.frozen() ? encoder_.with_classifier(weights(), {}) : averaging_server::predict();
  }
  std::map<std::string, double> figures() const override {
    std::map<std::string, double> all;
    encoder_.add_figures(all);
    return all;
  }

private:
  /// All of task 1, or what is held out of every task.
  [[nodiscard]] sample_view encoder_samples(const central_rows& from) const {
    if (run_->with.encoder_data == encoder_rows::task_1)
      return from.of_task({0});
    auto rows = std::make_shared<std::vector<std::int64_t>>();
    sample_view all;
    for (std::uint32_t t = 0; t < run_->whole.tasks; ++t) {
      all = run_->rows_of(from.of_task({t}), true);
      rows->insert(rows->end(), all.rows->begin(), all.rows->end());
    }
    return {.source = all.source, .rows = std::move(rows)};
  }

  std::shared_ptr<const plan_of_run> run_;
  frozen_encoder encoder_;
};

// -- the learner ------------------------------------------------------------------------------------------------------

// It remembers what it rehearses of each task it has met ("rows.1": rows of the data set; "kept.1": embeddings), and,
// behind a frozen encoder, what that makes of the rows it trains on in the current task ("current.1").
std::string named(const char* what, std::uint32_t task) { return std::string(what) + "." + std::to_string(task + 1); }

void put(tensor_map& memory, const std::string& name, const extract_output& seen) {
  memory.put(name + ".features", seen.features.cpu());
  memory.put(name + ".labels", seen.labels.cpu().to(at::kInt));
}
void put(tensor_map& memory, const std::string& name, const embedding_rows& rows) {
  memory.put(name + ".features", rows.features);
  memory.put(name + ".labels", rows.labels);
}
embedding_rows recalled(const tensor_map& memory, const std::string& name) {
  if (const auto* features = memory.find(name + ".features"))
    return {.features = *features, .labels = memory.at(name + ".labels")};
  return {};
}
tensor_map without_current(const tensor_map& memory) {
  tensor_map rest;
  for (const auto& [name, value] : memory)
    if (!name.starts_with("current."))
      rest.put(name, value);
  return rest;
}

/// Rows of `from` at `positions`.
sample_view picked(const sample_view& from, std::span<const std::int64_t> positions) {
  auto rows = std::make_shared<std::vector<std::int64_t>>();
  for (const auto position : positions)
    rows->push_back((*from.rows)[static_cast<std::size_t>(position)]);
  return {.source = from.source, .rows = std::move(rows)};
}
at::Tensor numbers_of(const sample_view& view) {
  auto made = at::empty({view.size()}, at::kLong);
  std::copy(view.rows->begin(), view.rows->end(), made.mutable_data_ptr<std::int64_t>());
  return made;
}

class central_rehearsal final : public strategy {
public:
  void keys(key_table& table) override;
  method_needs needs() const override {
    return {.rows = with_.system == rehearsal_kind::offline ? rows_shown::offline : rows_shown::current,
            .central_data = true,
            .defaults = "[model]\nname = \"ebr\"\n[clients]\ncount = 1\n"};
  }
  findings check(const method_setup& setup) const override;
  void prepare(const method_setup& setup) override;
  task<client_result> client_round(client_context& ctx, const broadcast& in) const override;
  std::unique_ptr<server_half> make_server() const override { return std::make_unique<central_server>(run_); }

private:
  [[nodiscard]] bool keeps_embeddings() const {
    return with_.frozen() && (with_.system == rehearsal_kind::ebr || with_.system == rehearsal_kind::noise);
  }
  [[nodiscard]] bool keeps_rows() const { return with_.keeps() && !keeps_embeddings(); }
  [[nodiscard]] std::vector<std::int64_t> kept_positions(std::int64_t n, task_id of) const;
  [[nodiscard]] sample_view with_kept_rows(const sample_view& current, const tensor_map& memory,
                                           std::uint32_t task) const;
  [[nodiscard]] sample_view embeddings_to_train(const tensor_map& memory, std::uint32_t task) const;
  [[nodiscard]] train_job training(const client_context& ctx, const broadcast& in, sample_view samples) const;

  options with_;
  std::shared_ptr<const plan_of_run> run_;
};

void central_rehearsal::prepare(const method_setup& setup) {
  auto run = std::make_shared<plan_of_run>();
  run->with = with_;
  run->whole = setup;
  run->net = as_embedding_model(setup.net);
  run->learnt = with_.frozen() ? classifier_setup(setup) : setup;
  if (with_.system == rehearsal_kind::noise && with_.pretrains()) {
    rng_stream draw({.seed = setup.seed, .what = noise_draw});
    run->noise_encoder = weights_only(initial_weights(*run->net->encoder(), draw.bits64()));
  }
  run_ = std::move(run);
}

task<client_result> central_rehearsal::client_round(client_context& ctx, const broadcast& in) const {
  const auto task = with_.system == rehearsal_kind::offline ? 0 : in.place.task.value; // offline has one
  auto memory = std::make_shared<tensor_map>(ctx.memory());
  const auto current = run_->rows_of(ctx.samples(), false);
  const auto kept = kept_positions(current.size(), {task});
  auto samples = with_kept_rows(current, *memory, task);
  if (with_.frozen() && recalled(*memory, named("current", task)).size() == 0) { // once per task
    extract_job wanted{.net = run_->net->encoder(), .weights = in.first_contact, .samples = samples, .logits = false};
    auto looking = ctx.extract(std::move(wanted));
    auto seen = co_await looking;
    *memory = without_current(*memory);
    put(*memory, named("current", task), seen);
    if (keeps_embeddings() && run_->noise_encoder) {
      extract_job other{.net = run_->net->encoder(),
                        .weights = run_->noise_encoder,
                        .samples = picked(current, kept),
                        .logits = false};
      auto looking_again = ctx.extract(std::move(other));
      auto noise = co_await looking_again;
      put(*memory, named("kept", task), noise);
    } else if (keeps_embeddings()) {
      put(*memory, named("kept", task), recalled(*memory, named("current", task)).at(kept));
    }
  }
  if (keeps_rows() && !memory->find(named("rows", task)))
    memory->put(named("rows", task), numbers_of(picked(current, kept)));
  if (with_.frozen())
    samples = embeddings_to_train(*memory, task);
  auto learning = ctx.train(training(ctx, in, samples));
  auto trained = co_await learning;
  co_return client_result{.upload = trained.weights, .memory = memory, .rows = ctx.samples().size()};
}

/// The same for every system that keeps as much.
std::vector<std::int64_t> central_rehearsal::kept_positions(std::int64_t n, task_id of) const {
  if (!with_.keeps())
    return {};
  const auto most = static_cast<std::int64_t>(static_cast<double>(n) * with_.ebr_repeat_cap);
  const auto count = std::min(share_of(with_.share(), n), with_.system == rehearsal_kind::ebr ? most : n);
  return drawn_positions(n, count, {.seed = run_->whole.seed, .what = kept_draw, .task = of});
}

/// `current` and what is kept of earlier tasks, as rows of the data set.
sample_view central_rehearsal::with_kept_rows(const sample_view& current, const tensor_map& memory,
                                              std::uint32_t task) const {
  auto rows = std::make_shared<std::vector<std::int64_t>>(*current.rows);
  for (std::uint32_t past = 0; past < task && keeps_rows(); ++past)
    if (const auto* kept = memory.find(named("rows", past))) {
      const auto* const values = kept->const_data_ptr<std::int64_t>();
      rows->insert(rows->end(), values, values + kept->numel());
    }
  return {.source = current.source, .rows = std::move(rows)};
}

sample_view central_rehearsal::embeddings_to_train(const tensor_map& memory, std::uint32_t task) const {
  std::vector<embedding_rows> parts{recalled(memory, named("current", task))};
  for (std::uint32_t past = 0; past < task; ++past)
    if (auto kept = recalled(memory, named("kept", past)); kept.size() > 0)
      parts.push_back(std::move(kept));
  const auto& shape = run_->net->what();
  return training_set(parts, shape, !shape.normal);
}

train_job central_rehearsal::training(const client_context& ctx, const broadcast& in, sample_view samples) const {
  const auto& setup = run_->learnt;
  const auto& shape = run_->net->what();
  const auto classes = with_.system == rehearsal_kind::offline ? class_range{0, run_->whole.classes} : in.place.opened;
  const bool variational = !with_.frozen() && shape.normal;
  return {.net = setup.net,
          .start = in.weights,
          .samples = std::move(samples),
          .objective = variational ? ver_loss(with_.encoder.beta, shape.low, shape.high) : cross_entropy(),
          .side = nullptr,
          .teacher = nullptr,
          .options = options_for_round(setup.training, trainable_part::all, classes, in.place.round_of_task,
                                       in.place.rounds_of_task),
          .stream = ctx.training_stream()};
}

findings central_rehearsal::check(const method_setup& setup) const {
  findings wrong;
  if (!as_embedding_model(setup.net))
    wrong.push_back({"model.name", fmt::format("'{}' has no encoder and classifier to part; expected model.name = "
                                               "\"ebr\" or \"vee\"",
                                               setup.net->identity())});
  if (setup.clients != 1)
    wrong.push_back({"clients.count",
                   fmt::format("clients.count = {}: central-rehearsal has one learner; expected 1", setup.clients)});
  if (setup.trainable == trainable_part::head)
    wrong.push_back({"model.trainable",
                   "model.trainable = \"head\": central-rehearsal trains the whole net or the whole classifier; "
                   "expected \"all\""});
  if (with_.encoder_is == encoder_mode::trained &&
      (with_.system == rehearsal_kind::ebr || with_.system == rehearsal_kind::noise))
    wrong.push_back({"strategy.encoder", "encoder = \"trained\" with a system that rehearses embeddings: they would "
                                       "age as the encoder moves; expected \"frozen\" or \"auto\""});
  return wrong;
}

void central_rehearsal::keys(key_table& table) {
  table.choice(
      "system", with_.system,
      {{"ebr", rehearsal_kind::ebr},
       {"none", rehearsal_kind::none},
       {"naive", rehearsal_kind::naive},
       {"noise", rehearsal_kind::noise},
       {"offline", rehearsal_kind::offline}},
      "What is rehearsed: embeddings, nothing, raw rows, a random encoder's vectors; offline: all tasks at once.");
  table.choice(
      "encoder", with_.encoder_is,
      {{"auto", encoder_mode::by_system}, {"frozen", encoder_mode::frozen}, {"trained", encoder_mode::trained}},
      "Whether the encoder learns with its classifier; auto: frozen for ebr and noise.");
  table.choice("vee_data", with_.encoder_data,
               {{"held-out", encoder_rows::held_out}, {"task1-all", encoder_rows::task_1}},
               "What a frozen encoder is trained on before: rows of every task that nothing else uses, or task 1.");
  table.number("held_out", with_.held_out, {.low = 0.0, .high = 1.0, .open_low = true},
               "Share of all rows that vee_data = \"held-out\" takes.");
  table.number("rehearsal_ratio", with_.rehearsal_ratio, {.low = 0.0, .high = 1.0},
               "Rows kept of each task, as a share of its rows.");
  table.integer("ebr_multiplier", with_.ebr_multiplier, {.low = 1, .high = 1'000},
                "ebr: times rehearsal_ratio, as embeddings are smaller than images.");
  table.number("ebr_repeat_cap", with_.ebr_repeat_cap, {.low = 0.0, .high = 1'000.0},
               "ebr: embeddings kept of a task at most, times its rows.");
  table.choice("noise_reading", with_.noise, {{"a", noise_reading::other_encoder}, {"b", noise_reading::front_end}},
               "noise: the random encoder makes only what is rehearsed, or is the classifier's encoder too.");
  table.number("beta", with_.encoder.beta, {.low = 0.0},
               "vee: weight of the KL divergence, summed over the embedding, in the encoder's training.");
  table.number("vee_learning_rate", with_.encoder.learning_rate, {.low = 0.0, .open_low = true},
               "Of a frozen encoder's training before, Adam.");
  table.integer("vee_epochs", with_.encoder.epochs, {.low = 0, .high = 100'000},
                "Of the same; 0: it stays as drawn, or as model.weights gives it.");
}

const strategy_registration line{
    {.name = "central-rehearsal",
     .summary = "one learner with all data of a task: FIL-VER's centralised study and its offline ceiling",
     .make = []() -> std::unique_ptr<strategy> { return std::make_unique<central_rehearsal>(); }}};

} // namespace
} // namespace mneme
