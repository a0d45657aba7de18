// Central rehearsal: a single learner with all data of the current task. It is the centralized study of FIL-VER (arXiv
// 2110.09695, section 5.1) and the upper bound of its federated study. If the encoder is trained, it is trained
// together with the classifier by eq. 9 (eq. 7 for point embeddings). If the encoder is frozen, the classifier is
// trained by cross-entropy on samples of the embeddings (eq. 4). The key `system` selects the rehearsal:
// - none: no rehearsal; naive: stored raw rows; offline: all tasks together;
// - ebr: stored embeddings of a frozen encoder, `ebr_multiplier` times as many;
// - noise: the same with a random encoder. With noise_scope = "rehearsal", only the rehearsed vectors come from the
//   random encoder, and the classifier uses the frozen one; with "all", the classifier uses the random encoder, too.
//
// Official code: none.
//
// Ours: with a frozen encoder, naive and ebr would be identical (multiplier 1), but the paper plots different curves.
// Therefore systems without embeddings train the encoder with the classifier, unless `encoder` is set. The paper's "16
// times" is the number of vectors; each is repeated at most ebr_repeat_cap times. The frozen encoder is trained on a
// tenth of every task (vee_data), because one trained on a single permutation does not transfer.
#include "strategies/fil_ver/embedding_rehearsal.hpp"
#include "strategies/fil_ver/ver_loss.hpp"
#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <algorithm>
#include <fmt/format.h>
namespace mneme::central_rehearsal_method {
namespace {

// Axes: n rows of a task, m rows kept of it, F features of the encoder.

enum draws : std::uint32_t { kept_draw = first_method_purpose, held_out_draw, noise_draw };
enum class rehearsal_kind : std::uint8_t { none, naive, noise, ebr, offline };
enum class encoder_mode : std::uint8_t { by_system, frozen, trained };
enum class encoder_rows : std::uint8_t { held_out, task_1 };

struct options : embedding_rehearsal_options {
  rehearsal_kind system = rehearsal_kind::ebr;
  encoder_mode encoder_is = encoder_mode::by_system;
  encoder_rows encoder_data = encoder_rows::held_out;
  double held_out = 0.1;

  [[nodiscard]] bool points() const { return system == rehearsal_kind::ebr; }
  [[nodiscard]] bool rehearses_embeddings() const {
    return system == rehearsal_kind::ebr || system == rehearsal_kind::noise;
  }
  [[nodiscard]] bool frozen() const {
    if (encoder_is != encoder_mode::by_system)
      return encoder_is == encoder_mode::frozen;
    return rehearses_embeddings();
  }
  /// True if the server trains an encoder before the first round.
  [[nodiscard]] bool pretrains() const {
    return frozen() && !(system == rehearsal_kind::noise && noise == noise_reading::front_end);
  }
  [[nodiscard]] bool keeps() const { return system != rehearsal_kind::none && system != rehearsal_kind::offline; }
  [[nodiscard]] bool keeps_embeddings() const { return frozen() && rehearses_embeddings(); }
  [[nodiscard]] bool keeps_rows() const { return keeps() && !keeps_embeddings(); }
};

/// Returns the rows of `from` at `positions`.
sample_view picked(const sample_view& from, std::span<const std::int64_t> positions) {
  auto rows = std::make_shared<std::vector<std::int64_t>>();
  for (const auto position : positions)
    rows->push_back((*from.rows)[static_cast<std::size_t>(position)]);
  return {.source = from.source, .rows = std::move(rows)};
}

/// Settings that both halves share.
struct run_settings : split_encoder_net {
  options settings{};
  tensors_ref noise_encoder{}; // weights of the random encoder, if noise_scope = "rehearsal"

  /// True if a row of the data set is reserved for the training of the encoder. Each row is drawn separately.
  [[nodiscard]] bool is_held_out(std::int64_t row) const {
    if (!settings.pretrains() || settings.encoder_data != encoder_rows::held_out)
      return false;
    rng_stream draw({.seed = whole.seed, .purpose = held_out_draw, .index = static_cast<std::uint64_t>(row)});
    return draw.uniform() < settings.held_out;
  }
  [[nodiscard]] sample_view rows_of(const sample_view& from, bool held_out) const {
    auto rows = std::make_shared<std::vector<std::int64_t>>();
    std::copy_if(from.rows->begin(), from.rows->end(), std::back_inserter(*rows),
                 [&](std::int64_t row) { return is_held_out(row) == held_out; });
    return {.source = from.source, .rows = std::move(rows)};
  }
};

// -- server half ------------------------------------------------------------------------------------------------------

/// Trains the frozen encoder, if there is one. There is a single upload, so the average equals this upload.
class central_server final : public encoder_server {
public:
  explicit central_server(std::shared_ptr<const run_settings> run)
      : encoder_server(*run, run->settings.encoder, {.frozen = run->settings.frozen(), .sampled = {}}),
        run_(std::move(run)) {}

  task<task_plan> open_task(server_context& ctx, const round_info& info) override {
    if (info.task.value == 0 && run_->settings.pretrains()) {
      auto training = encoder().train(ctx, encoder_samples(ctx.rows()), {0, run_->whole.classes}); // eq. 7 or 9
      co_await training;
    }
    co_return task_plan{};
  }

private:
  /// All rows of task 1, or the rows reserved in every task.
  [[nodiscard]] sample_view encoder_samples(const central_rows& from) const {
    if (run_->settings.encoder_data == encoder_rows::task_1)
      return from.of_task({0});
    auto rows = std::make_shared<std::vector<std::int64_t>>();
    sample_view held_out;
    for (std::uint32_t t = 0; t < run_->whole.tasks; ++t) {
      held_out = run_->rows_of(from.of_task({t}), true);
      rows->insert(rows->end(), held_out.rows->begin(), held_out.rows->end());
    }
    return {.source = held_out.source, .rows = std::move(rows)};
  }

  std::shared_ptr<const run_settings> run_;
};

// -- the learner ------------------------------------------------------------------------------------------------------

// The learner's memory, for each task so far: row numbers ("rows.1"), or embeddings ("kept.features.1",
// "kept.labels.1"). With a frozen encoder it also holds the encoded current rows ("current.features.1").

tensor_map without_current(const tensor_map& memory) {
  tensor_map remembered;
  for (const auto& [name, value] : memory)
    if (!name.starts_with("current."))
      remembered.put(name, value);
  return remembered;
}

at::Tensor numbers_of(const sample_view& view) {
  auto numbers = at::empty({view.size()}, at::kLong);
  std::copy(view.rows->begin(), view.rows->end(), numbers.mutable_data_ptr<std::int64_t>());
  return numbers;
}

class central_rehearsal final : public strategy {
public:
  void keys(key_table& table) override;
  method_needs needs() const override {
    return {.rows = options_.system == rehearsal_kind::offline ? row_visibility::offline : row_visibility::current,
            .server_trains_on_rows = true,
            .defaults = "[model]\nname = \"ebr\"\n[clients]\ncount = 1\n"};
  }
  diagnostics check(const method_setup& setup) const override;
  void prepare(const method_setup& setup) override;
  task<client_result> client_round(client_context& ctx, const broadcast& in) const override;
  std::unique_ptr<server_half> make_server() const override { return std::make_unique<central_server>(run_); }

private:
  [[nodiscard]] std::vector<std::int64_t> kept_positions(std::int64_t n, task_id task) const;
  [[nodiscard]] sample_view with_kept_rows(const sample_view& current, const tensor_map& memory,
                                           std::uint32_t task) const;
  [[nodiscard]] sample_view embeddings_to_train(const tensor_map& memory, std::uint32_t task) const;
  [[nodiscard]] train_job training(const client_context& ctx, const broadcast& in, sample_view samples) const;

  options options_;
  std::shared_ptr<const run_settings> run_;
};

void central_rehearsal::prepare(const method_setup& setup) {
  run_settings run{split_encoder(setup, options_.frozen()), options_};
  if (options_.system == rehearsal_kind::noise && options_.pretrains()) {
    rng_stream draw({.seed = setup.seed, .purpose = noise_draw});
    run.noise_encoder = weights_only(initial_weights(*run.net->encoder(), draw.bits64()));
  }
  run_ = std::make_shared<const run_settings>(std::move(run));
}

task<client_result> central_rehearsal::client_round(client_context& ctx, const broadcast& in) const {
  const auto task = options_.system == rehearsal_kind::offline ? 0 : in.info.task.value; // "offline" has one task
  auto memory = std::make_shared<tensor_map>(ctx.memory());
  const auto current = run_->rows_of(ctx.samples(), false);
  const auto kept = kept_positions(current.size(), {task});
  auto samples = with_kept_rows(current, *memory, task);

  // Encodes the rows of a task once, with the frozen encoder. Then selects the rows to rehearse later.
  if (options_.frozen() && load_embeddings(*memory, "current.", task).size() == 0) {
    extract_job encoding{
        .net = run_->net->encoder(), .weights = in.initial_payload, .samples = samples, .logits = false};
    auto looking = ctx.extract(std::move(encoding));
    auto encoded = co_await looking;
    *memory = without_current(*memory);
    store_embeddings(*memory, "current.", task, on_host(encoded));
    if (options_.keeps_embeddings() && run_->noise_encoder) {
      extract_job other{.net = run_->net->encoder(),
                        .weights = run_->noise_encoder,
                        .samples = picked(current, kept),
                        .logits = false};
      auto second_request = ctx.extract(std::move(other));
      auto noise = co_await second_request;
      store_embeddings(*memory, "kept.", task, on_host(noise));
    } else if (options_.keeps_embeddings()) {
      store_embeddings(*memory, "kept.", task, load_embeddings(*memory, "current.", task).at(kept));
    }
  }
  if (options_.keeps_rows() && !memory->find(of_task("rows", task)))
    memory->put(of_task("rows", task), numbers_of(picked(current, kept)));

  // Trains the whole net, or the classifier on the frozen encoder.
  if (options_.frozen())
    samples = embeddings_to_train(*memory, task);
  auto learning = ctx.train(training(ctx, in, samples));
  auto trained = co_await learning;
  co_return client_result{.upload = trained.weights, .memory = memory, .rows = ctx.samples().size()};
}

/// Returns the positions of the rows to keep. They are the same for all systems that keep the same number of rows.
std::vector<std::int64_t> central_rehearsal::kept_positions(std::int64_t n, task_id task) const {
  if (!options_.keeps())
    return {};
  const auto count = options_.rehearsed(n, n, options_.points());
  return draw_positions(n, count, {.seed = run_->whole.seed, .purpose = kept_draw, .task = task});
}

/// Returns `current` and the kept rows of earlier tasks, as rows of the data set.
sample_view central_rehearsal::with_kept_rows(const sample_view& current, const tensor_map& memory,
                                              std::uint32_t task) const {
  auto rows = std::make_shared<std::vector<std::int64_t>>(*current.rows);
  for (std::uint32_t past = 0; past < task && options_.keeps_rows(); ++past)
    if (const auto* kept = memory.find(of_task("rows", past))) {
      const auto* const values = kept->const_data_ptr<std::int64_t>();
      rows->insert(rows->end(), values, values + kept->numel());
    }
  return {.source = current.source, .rows = std::move(rows)};
}

sample_view central_rehearsal::embeddings_to_train(const tensor_map& memory, std::uint32_t task) const {
  std::vector<embedding_rows> parts{load_embeddings(memory, "current.", task)};
  for (std::uint32_t past = 0; past < task; ++past)
    if (auto kept = load_embeddings(memory, "kept.", past); kept.size() > 0)
      parts.push_back(std::move(kept));
  return training_set(parts, run_->shape(), !run_->shape().normal);
}

/// The loss is that of eq. 9 if a variational encoder is trained, otherwise cross-entropy (eq. 7).
train_job central_rehearsal::training(const client_context& ctx, const broadcast& in, sample_view samples) const {
  const auto& shape = run_->shape();
  const auto classes =
      options_.system == rehearsal_kind::offline ? class_range{0, run_->whole.classes} : in.info.seen_classes;
  auto job = local_training(run_->learned, ctx, in, {.samples = std::move(samples), .classes = classes});
  if (!options_.frozen() && shape.normal)
    job.objective = ver_loss(options_.encoder.beta, shape.low, shape.high);
  return job;
}

diagnostics central_rehearsal::check(const method_setup& setup) const {
  auto errors = validate_net(setup, "central-rehearsal", "model.name = \"ebr\" or \"vee\"");
  if (setup.clients != 1)
    errors.push_back({"clients.count",
                      fmt::format("clients.count = {}: central-rehearsal has one learner; expected 1", setup.clients)});
  if (options_.encoder_is == encoder_mode::trained && options_.rehearses_embeddings())
    errors.push_back({"strategy.encoder", "encoder = \"trained\" with a system that rehearses embeddings: they would "
                                          "become outdated as the encoder changes; expected \"frozen\" or \"auto\""});
  return errors;
}

void central_rehearsal::keys(key_table& table) {
  table.choice(
      "system", options_.system,
      {{"ebr", rehearsal_kind::ebr},
       {"none", rehearsal_kind::none},
       {"naive", rehearsal_kind::naive},
       {"noise", rehearsal_kind::noise},
       {"offline", rehearsal_kind::offline}},
      "Rehearsed data: embeddings, nothing, raw rows, or vectors of a random encoder; offline: all tasks together.");
  table.choice(
      "encoder", options_.encoder_is,
      {{"auto", encoder_mode::by_system}, {"frozen", encoder_mode::frozen}, {"trained", encoder_mode::trained}},
      "Train the encoder with its classifier, or freeze it; auto: frozen for ebr and noise.");
  table.choice("vee_data", options_.encoder_data,
               {{"held-out", encoder_rows::held_out}, {"task1-all", encoder_rows::task_1}},
               "Training data of a frozen encoder: held-out rows of every task, or task 1.");
  table.number("encoder_holdout_share", options_.held_out, {.low = 0.0, .high = 1.0, .open_low = true},
               "Share of all rows that are held out for the encoder, if vee_data = \"held-out\".");
  table.number("rehearsal_ratio", options_.ratio, {.low = 0.0, .high = 1.0},
               "Rows kept of each task, as a share of its rows.");
  options_.vector_keys(table);
  options_.beta_key(table);
  options_.training_keys(table);
}

const strategy_registration line{
    {.name = "central-rehearsal",
     .summary = "one learner with all data of a task: FIL-VER's centralized study and its offline upper bound",
     .make = []() -> std::unique_ptr<strategy> { return std::make_unique<central_rehearsal>(); }}};

} // namespace
} // namespace mneme::central_rehearsal_method
