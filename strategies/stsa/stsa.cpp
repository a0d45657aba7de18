// STSA and STSA-E: closed-form spatial-temporal statistics aggregation (arXiv 2506.01327, WWW 2026). FedAvg with a
// cosine head adapts the net in task 1; then the net is frozen. In every task, each client uploads sums over its
// features once. X are the features and Y the one-hot labels of client k, and W_R is a fixed random matrix. The server
// solves a ridge regression for all classes seen:
//     H = ReLU(X W_R),  G_k = H^T H,  C_k = H^T Y                                        (eqs. 3-6)
//     G <- G + sum_k G_k,  C <- C + sum_k C_k,  W = (G + gamma I)^-1 C                    (eqs. 7-9)
// In STSA-E, a client splits its rows into `dummies` parts and uploads only C_k and the class counts of each part; the
// server estimates G (eqs. 10-11). In Table 3, PILoRA or Fed-CPrompt adapts the net in task 1 (`adapter`).
//
// The official code predicts by the cosine of W_c and features, and clamps a negative coefficient of the estimate to 0.
//
// Ours: preset "paper" has linear scores and no clamp, preset "official" the cosine and the clamp. statistics_sums.cpp
// computes eqs. 7, 8, 10 and 11.
#include "runtime/base/triangle.hpp"
#include "runtime/method/file_keys.hpp"
#include "runtime/storage/parameters.hpp"
#include "runtime/training/ridge.hpp"
#include "strategies/shared/averaging.hpp"
#include "strategies/shared/training_keys.hpp"
#include "strategies/stsa/adapting_method.hpp"
#include "strategies/stsa/dummy_clients.hpp"
#include "strategies/stsa/random_features.hpp"
#include "strategies/stsa/statistics_sums.hpp"
#include "strategies/stsa/stsa_presets.hpp"
#include "strategies/stsa/upload_privacy.hpp"
#include <ATen/TensorOperators.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/zeros.h>
#include <algorithm>
#include <fmt/format.h>
namespace mneme::stsa_method {
namespace {

// Axes: D features of the net, M random features, C classes, c classes of a task, P dummy clients per client.

constexpr std::int64_t width_max = 100'000; // limit of the projection's width

enum draws : std::uint32_t { projection_draw = first_method_purpose, dummy_draw, noise_draw, mask_draw };
enum class adaptation_kind : std::uint8_t { federated, none };
enum class estimator_kind : std::uint8_t { exact, estimated };
enum class noise_place : std::uint8_t { none, sums, counts, both };

struct options {
  adaptation_kind adaptation = adaptation_kind::federated;
  adapter_choice adapter{};
  std::int64_t adaptation_rounds = 100;
  std::int64_t width = 5000; // M, which a projection file overrides; 0: H = X
  std::filesystem::path projection_file{};
  double ridge = 1e4; // gamma; added to G as it is, not multiplied by the number of rows
  readout_kind readout = readout_kind::linear;
  estimator_kind estimator = estimator_kind::exact;
  std::int64_t dummies = 50;
  client_count kappa = client_count::total;
  bool clamp_b = false;
  dummy_split split = dummy_split::random;
  std::filesystem::path feature_cache{};
  double noise_scale = 0.2, noise_std = 0.05; // q and s of Table 7
  noise_place noise_on = noise_place::none;
  bool secure_sum = false;

  [[nodiscard]] bool estimated() const { return estimator == estimator_kind::estimated; }
  [[nodiscard]] bool noise_on_sums() const { return noise_on == noise_place::sums || noise_on == noise_place::both; }
  [[nodiscard]] bool noise_on_counts() const {
    return noise_on == noise_place::counts || noise_on == noise_place::both;
  }
};

/// Settings that both halves share.
struct run_settings {
  options settings{};
  std::shared_ptr<const strategy> adapter{}; // null: FedAvg
  method_setup setup{};
  at::Tensor projection{}; // W_R [D, M] float64; undefined: H = X

  [[nodiscard]] std::int64_t adaptation_rounds() const {
    return settings.adaptation == adaptation_kind::federated ? settings.adaptation_rounds : 0;
  }
  [[nodiscard]] bool adapts(const round_info& info) const {
    return info.task.value == 0 && info.round_of_task < adaptation_rounds();
  }
  /// Returns the round's info for the adapting method, whose task ends before the round of statistics.
  [[nodiscard]] round_info of_adaptation(round_info info) const {
    info.rounds_of_task = adaptation_rounds();
    return info;
  }
  [[nodiscard]] std::int64_t width() const {
    return projection.defined() ? projection.size(1) : setup.net->feature_width();
  }
  [[nodiscard]] mask_ring ring(task_id task) const {
    return {.key = {.seed = setup.seed, .purpose = mask_draw, .task = task}, .clients = setup.clients};
  }
};

// -- the method -------------------------------------------------------------------------------------------------------

class stsa final : public averaging_method, public file_keys {
public:
  void keys(key_table& table) override;
  void read_file_keys() override;
  std::vector<preset> presets() const override { return stsa_presets(); }
  method_needs needs() const override;
  upload_content uploads() const override { return upload_content::other; }
  diagnostics check(const method_setup& setup) const override;
  void prepare(const method_setup& setup) override;
  task<client_result> client_round(client_context& ctx, const broadcast& in) const override;
  std::unique_ptr<server_half> make_server() const override;

protected:
  /// The learning rate schedule covers the adaptation rounds only, not the round of statistics after them.
  void adjust(train_job& job, const broadcast& in) const override {
    job.options = options_for_round(setup().training, setup().trainable, covered_classes(in.info),
                                    in.info.round_of_task, run_->adaptation_rounds());
  }

private:
  [[nodiscard]] diagnostics check_adaptation(const method_setup& setup) const;
  [[nodiscard]] statistics_job statistics_of(const client_context& ctx, const broadcast& in) const;
  [[nodiscard]] privacy_options privacy_of(const client_context& ctx) const;

  options options_;
  std::shared_ptr<const run_settings> run_;
};

// -- client half ------------------------------------------------------------------------------------------------------

void stsa::prepare(const method_setup& setup) {
  auto run = std::make_shared<run_settings>();
  run->settings = options_;
  run->setup = setup;
  const auto file = setup.files.find("projection_file");
  if (file != setup.files.end())
    run->projection = file->second.at("W_R").to(at::kDouble).contiguous();
  else if (options_.width > 0)
    run->projection =
        random_projection({.seed = setup.seed, .purpose = projection_draw}, setup.net->feature_width(), options_.width);
  if (const auto adapter = run->adaptation_rounds() > 0 ? adapting_method(options_.adapter) : nullptr) {
    adapter->prepare(setup);
    run->adapter = adapter;
  } else if (run->adaptation_rounds() > 0) {
    averaging_method::prepare(setup);
  }
  run_ = std::move(run);
}

/// Adapts the net, or uploads statistics of the client's rows under the frozen net.
task<client_result> stsa::client_round(client_context& ctx, const broadcast& in) const {
  if (run_->adapts(in.info) && run_->adapter) {
    auto shown = in;
    shown.info = run_->of_adaptation(in.info);
    auto adapting = run_->adapter->client_round(ctx, shown);
    auto adapted = co_await adapting;
    co_return adapted;
  }
  if (run_->adapts(in.info)) {
    auto training = averaging_method::client_round(ctx, in);
    auto trained = co_await training;
    co_return trained;
  }

  // H = ReLU(X W_R), G_k = H^T H, C_k = H^T Y (eqs. 3-6).
  auto summing = ctx.statistics(statistics_of(ctx, in));
  auto summed = co_await summing;
  auto upload = std::make_shared<tensor_map>();
  if (summed.gram.defined())
    upload->put("gram", summed.gram);
  upload->put("sums", summed.sums);
  if (options_.estimated())
    upload->put("counts", summed.counts);

  // Noise and masks change the upload only.
  const auto privacy = privacy_of(ctx);
  if (!privacy.changes_upload())
    co_return client_result{.upload = upload, .memory = nullptr, .rows = ctx.samples().size()};
  put_privacy(*upload, privacy);
  tensors_ref plain = std::move(upload);
  auto hiding = ctx.compute({.name = "privacy", .run = &hidden, .in = plain});
  auto sent = co_await hiding;
  co_return client_result{.upload = sent.out, .memory = nullptr, .rows = ctx.samples().size()};
}

statistics_job stsa::statistics_of(const client_context& ctx, const broadcast& in) const {
  statistics_job job{.net = run_->setup.net,
                     .weights = in.weights ? in.weights : in.initial_payload,
                     .samples = ctx.samples(),
                     .projection = run_->projection,
                     .gram = !options_.estimated(),
                     .classes = in.info.current_classes,
                     .frozen = true};
  if (options_.estimated()) {
    job.parts = options_.dummies;
    job.part_of = dummy_of_rows(ctx.samples(), options_.dummies, options_.split, ctx.stream(dummy_draw));
  }
  return job;
}

/// Adds q eps, eps ~ N(0, s^2) (Table 7). With zero noise the upload is unchanged to the bit.
privacy_options stsa::privacy_of(const client_context& ctx) const {
  const double noise = options_.noise_scale * options_.noise_std;
  const auto key = ctx.stream(noise_draw);
  return {.noise = noise,
          .on_sums = noise > 0.0 && options_.noise_on_sums(),
          .on_counts = noise > 0.0 && options_.noise_on_counts(),
          .masked = options_.secure_sum,
          .noise_key = key,
          .ring = run_->ring(key.task)};
}

// -- server half ------------------------------------------------------------------------------------------------------

std::unique_ptr<statistics_sums> sums_for(const run_settings& run) {
  const auto& settings = run.settings;
  const statistics_sums::size size{.width = run.width(), .classes = run.setup.classes};
  if (settings.estimated())
    return std::make_unique<estimated_sums>(size, settings.dummies,
                                            estimate_rules{.kappa = settings.kappa, .clamp_b = settings.clamp_b});
  return std::make_unique<exact_sums>(size, exact_sums::rules{.masked = settings.secure_sum,
                                                              .noisy = settings.noise_on != noise_place::none,
                                                              .ring = run.ring({})});
}

/// Function of a compute job. Returns W = (G + gamma I)^-1 C (eq. 9) for the classes seen, float32.
tensor_map solve(const tensor_map& in) {
  tensor_map out;
  out.put("readout", solve_ridge(in.at("gram"), in.at("sums"), in.at("ridge").item<double>()).to(at::kFloat));
  return out;
}

class stsa_server final : public averaging_server {
public:
  explicit stsa_server(std::shared_ptr<const run_settings> run)
      : averaging_server(run->setup), run_(std::move(run)),
        adapter_(run_->adapter ? run_->adapter->make_server() : nullptr), statistics_(sums_for(*run_)),
        net_weights_(run_->setup.initial) {}

  /// Plans the adaptation rounds (in task 1), and one round in which every client uploads statistics.
  task<task_plan> open_task(server_context& ctx, const round_info& info) override {
    if (adapter_ && info.task.value == 0) {
      const auto shown = run_->of_adaptation(info); // must outlive the coroutine
      auto opening = adapter_->open_task(ctx, shown);
      co_await opening;
    }
    const auto adaptation = info.task.value == 0 ? run_->adaptation_rounds() : 0;
    co_return task_plan{.rounds = adaptation + 1, .all_enrolled = true, .clients_without_rows = true};
  }

  /// After the adaptation, the frozen net is sent to every client in the first round of statistics; later only to new
  /// clients.
  broadcast open_round(const round_info& info) override {
    if (run_->adapts(info))
      return adapter_ ? adapter_->open_round(run_->of_adaptation(info)) : averaging_server::open_round(info);
    asked_in_.push_back(info.round);
    const bool known = run_->adaptation_rounds() == 0 || info.task.value > 0;
    return {.info = {},
            .weights = known ? nullptr : net_weights_,
            .extra = nullptr,
            .initial_payload = known ? net_weights_ : nullptr};
  }

  void fold(const delivery& in) override {
    if (!in.upload->find("sums")) {
      if (adapter_)
        adapter_->fold(in);
      else if (in.rows > 0) // a client without rows trains nothing
        averaging_server::fold(in);
    } else if (in.started_from == asked_in_.back()) {
      statistics_->add(in);
    } else { // this is a late upload
      const auto task = std::find(asked_in_.begin(), asked_in_.end(), in.started_from) - asked_in_.begin();
      statistics_->add_late(in, run_->setup.task_classes.at(static_cast<std::size_t>(task)));
    }
  }

  task<void> close_round(server_context& ctx, const round_info& info) override {
    if (run_->adapts(info) && adapter_) {
      const auto shown = run_->of_adaptation(info); // must outlive the coroutine
      auto closing = adapter_->close_round(ctx, shown);
      co_await closing;
      net_weights_ = adapter_->predict().weights;
      co_return;
    }
    if (run_->adapts(info)) {
      average();
      net_weights_ = weights_only(weights());
      co_return;
    }

    auto adding = statistics_->end_task(ctx, info); // eqs. 7, 8
    co_await adding;
    if (info.task.value == 0)
      first_diagonal_ = mean_diagonal(statistics_->gram());

    auto equations = equations_of(info.seen_classes);
    auto solving = ctx.compute({.name = "ridge solve", .run = &solve, .in = equations}); // eq. 9
    auto solved = co_await solving;

    // The readout has a row for every class of the run; rows of future classes are zero.
    auto readout = at::zeros({run_->setup.classes, run_->width()}, at::kFloat);
    readout.narrow(0, 0, info.seen_classes.high).copy_(solved.out->at("readout"));
    readout_ = readout;
  }

  predictor predict() const override {
    if (!readout_.defined())
      return {.net = run_->setup.net, .weights = net_weights_};
    return {.net = run_->setup.net,
            .weights = net_weights_,
            .kind = run_->settings.readout,
            .projection = run_->projection,
            .readout = readout_,
            .frozen = true};
  }

  std::map<std::string, double> summary_metrics() const override {
    std::map<std::string, double> figures;
    statistics_->add_figures(figures);
    if (first_diagonal_ > 0.0)
      figures["ridge_relative"] = run_->settings.ridge / first_diagonal_;
    return figures;
  }

  void persist(archive& state) override {
    averaging_server::persist(state);
    if (adapter_)
      adapter_->persist(state);
    statistics_->persist(state);
    state(net_weights_).frozen(readout_)(first_diagonal_)(asked_in_);
  }

private:
  /// The input of solve().
  [[nodiscard]] tensors_ref equations_of(class_range seen_classes) const {
    auto equations = std::make_shared<tensor_map>();
    equations->put("gram", statistics_->gram());
    equations->put("sums", statistics_->sums().narrow(0, 0, seen_classes.high));
    equations->put("ridge", at::scalar_tensor(run_->settings.ridge, at::kDouble));
    return equations;
  }

  std::shared_ptr<const run_settings> run_;
  std::unique_ptr<server_half> adapter_; // null: FedAvg adapts the net
  std::unique_ptr<statistics_sums> statistics_;
  tensors_ref net_weights_;        // current weights of the net; all rounds of statistics share one handle
  at::Tensor readout_;             // W transposed [C, M] float32; undefined before the first statistics
  double first_diagonal_ = 0.0;    // mean of the diagonal of task 1's G, with which gamma is compared
  std::vector<round_id> asked_in_; // by task: the round of its statistics
};

std::unique_ptr<server_half> stsa::make_server() const { return std::make_unique<stsa_server>(run_); }

// -- declarations -----------------------------------------------------------------------------------------------------

method_needs stsa::needs() const {
  method_needs needed{.head = head_kind::cosine,
                      .round_barrier = true, // every client uploads its statistics once
                      .own_rounds = true,
                      .feature_folder = options_.feature_cache,
                      .frozen_net = options_.adaptation == adaptation_kind::none,
                      .defaults = "[strategy]\nweighting = \"uniform\"\n"};
  if (const auto adapter = adapting_method(options_.adapter)) {
    const auto its = adapter->needs();
    needed.prompts = its.prompts;
    needed.defaults += its.defaults;
  }
  if (options_.estimated() && options_.split == dummy_split::file)
    needed.partition_column = {.name = "dummy", .below = options_.dummies};
  if (!options_.projection_file.empty())
    needed.tensor_files = {{"projection_file", options_.projection_file}};
  return needed;
}

diagnostics stsa::check_adaptation(const method_setup& setup) const {
  const auto adapter = adapting_method(options_.adapter);
  if (options_.adapter.rate > 0.0 && options_.adapter.kind != adapter_kind::pilora)
    return {{"strategy.adapter_rate", "strategy.adapter_rate without adapter = \"pilora\": no low-rank adapter exists; "
                                      "expected 0, or training.learning_rate"}};
  if (options_.adaptation == adaptation_kind::none) {
    if (!adapter)
      return reject_batch_keys(setup, "with strategy.adaptation = \"none\" nothing is trained in batches");
    return {{"strategy.adapter", "strategy.adapter with adaptation = \"none\": no task adapts the net; expected "
                                 "adaptation = \"federated\" or adapter = \"none\""}};
  }
  if (!adapter)
    return averaging_method::check(setup);
  auto errors = adapter->check(setup);
  if (adapter->needs().prompts.of_task <= setup.net->feature_width()) // because components of later tasks are never
                                                                      // drawn
    std::erase_if(errors, [](const diagnostic& finding) { return finding.where == "strategy.components"; });
  return errors;
}

diagnostics stsa::check(const method_setup& setup) const {
  auto errors = check_adaptation(setup);
  const auto width = setup.net->feature_width();
  if (const auto file = setup.files.find("projection_file"); file != setup.files.end()) {
    const auto* projection = file->second.find("W_R");
    if (!projection)
      errors.push_back({"strategy.projection_file", options_.projection_file.string() +
                                                        ": found no tensor 'W_R'; expected W_R of shape [" +
                                                        std::to_string(width) + ", projection width]"});
    else if (projection->dim() != 2 || projection->size(0) != width || projection->size(1) < 1 ||
             !at::isFloatingType(projection->scalar_type()))
      errors.push_back({"strategy.projection_file",
                        options_.projection_file.string() + ": found W_R of shape " + c10::str(projection->sizes()) +
                            ", " + c10::toString(projection->scalar_type()) +
                            "; expected floating-point numbers of shape [" + std::to_string(width) +
                            ", projection width], as the net has " + std::to_string(width) + " features"});
  }
  // The server holds a triangle of G and a full matrix for the solver, in float64.
  constexpr double bytes_of_entry = 4.0 + 8.0, gibibyte = 1 << 30;
  const auto statistics = static_cast<double>(options_.width > 0 ? options_.width : width);
  const auto bytes = bytes_of_entry * statistics * statistics;
  if (const auto& room = setup.memory; bytes > static_cast<double>(room.bytes))
    errors.push_back(
        {"strategy.projection_width", fmt::format("strategy.projection_width = {}: matrices of {} x {} numbers take "
                                                  "about {:.0f} GiB, but {:.1f} GiB are {}; expected a smaller width",
                                                  options_.width, statistics, statistics, bytes / gibibyte,
                                                  static_cast<double>(room.bytes) / gibibyte, room.source)});
  if (setup.transition == task_transition::staggered)
    errors.push_back({"tasks.transition",
                      "tasks.transition = \"staggered\": stsa requests the statistics of a task once, when it "
                      "opens, so clients that enter it later could not send theirs; expected \"round\""});
  if (setup.keep_task_share > 0.0)
    errors.push_back({"tasks.keep_task_share",
                      "tasks.keep_task_share > 0: stsa requests the statistics of a task once, when it "
                      "opens, so clients that keep their old task could not send theirs; expected 0"});
  if (options_.secure_sum && options_.estimated())
    errors.push_back({"strategy.secure_aggregation",
                      "secure_aggregation = true with estimator = \"estimated\": the server needs each dummy "
                      "client's sums, not their total; expected estimator = \"exact\""});
  if (!options_.estimated() && options_.noise_on_counts())
    errors.push_back({"strategy.noise_on",
                      "noise on counts with estimator = \"exact\", which sends none; expected \"none\" or "
                      "\"sums\", or estimator = \"estimated\""});
  return errors;
}

void stsa::read_file_keys() {
  if (options_.projection_file.empty())
    return;
  const auto named = read_safetensors(options_.projection_file);
  const auto* projection = named ? named->find("W_R") : nullptr;
  if (projection && projection->dim() == 2 && projection->size(1) >= 1 && projection->size(1) <= width_max)
    options_.width = projection->size(1);
}

void stsa::keys(key_table& table) {
  table.choice("adaptation", options_.adaptation,
               {{"federated", adaptation_kind::federated}, {"none", adaptation_kind::none}},
               "Train the net with FedAvg in task 1, or use its initial weights.");
  table.choice(
      "adapter", options_.adapter.kind,
      {{"none", adapter_kind::none}, {"pilora", adapter_kind::pilora}, {"fed-cprompt", adapter_kind::fed_cprompt}},
      "Method (with its defaults) that adapts a frozen vit in task 1, in place of FedAvg of the whole net. Its "
      "low-rank adapters or prompts are kept; its centers or head are discarded (Table 3).");
  table.omit_default_from_digest();
  table.number(
      "adapter_rate", options_.adapter.rate, {.low = 0.0},
      "Learning rate of the low-rank adapter if adapter = \"pilora\" (PILoRA's low_rank_rate); 0: PILoRA's default.");
  table.omit_default_from_digest();
  table.integer("adaptation_rounds", options_.adaptation_rounds, {.low = 1, .high = 1'000'000},
                "Training rounds in task 1 before the round of statistics, if adaptation = \"federated\".");
  table.integer("projection_width", options_.width, {.low = 0, .high = width_max},
                "M: number of random features; 0: the net's features are used unchanged.");
  table.path("projection_file", options_.projection_file,
             "safetensors file with the projection, a tensor W_R [features, M] that also sets M; empty: random W_R.");
  table.number("ridge", options_.ridge, {.low = 0.0, .open_low = true}, "gamma of the ridge regression, added to G.");
  table.choice("readout", options_.readout, {{"linear", readout_kind::linear}, {"cosine", readout_kind::cosine}},
               "Score of class c: W_c . phi as in the paper, or the cosine of W_c and phi as in the official code.");
  table.choice("estimator", options_.estimator,
               {{"exact", estimator_kind::exact}, {"estimated", estimator_kind::estimated}},
               "Clients send Gram matrices (STSA), or class sums of dummy clients only (STSA-E).");
  table.integer("dummies", options_.dummies, {.low = 1, .high = 100'000},
                "Number of dummy clients per client, if estimator = \"estimated\".");
  table.choice("kappa", options_.kappa, {{"total", client_count::total}, {"nonempty", client_count::nonempty}},
               "Dummy clients by whose number the scatter is divided: all (paper), or those with rows (unbiased).");
  table.flag("clamp_b", options_.clamp_b, "Negative coefficients of the estimate become 0, as in the official code.");
  table.choice("dummy_split", options_.split,
               {{"random", dummy_split::random}, {"stratified", dummy_split::stratified}, {"file", dummy_split::file}},
               "Assignment of a client's rows to its dummy clients; file: by the column `dummy` of partition.file.");
  table.path("feature_cache", options_.feature_cache,
             "Folder that caches features of frozen nets between runs; empty: in memory only.");
  table.number("noise_scale", options_.noise_scale, {.low = 0.0}, "Privacy noise: q in value + q eps.");
  table.number("noise_std", options_.noise_std, {.low = 0.0}, "Privacy noise: s in eps ~ N(0, s^2).");
  table.choice("noise_on", options_.noise_on,
               {{"none", noise_place::none},
                {"sums", noise_place::sums},
                {"counts", noise_place::counts},
                {"both", noise_place::both}},
               "Statistics with privacy noise: none, Gram matrix and class sums, class counts, or all of these.");
  table.flag("secure_aggregation", options_.secure_sum,
             "Hide uploads with pairwise masks that cancel in their sum (estimator = \"exact\" only).");
}

const strategy_registration line{
    {.name = "stsa",
     .summary = "closed-form statistics of a frozen net, one round a task (STSA, arXiv 2506.01327)",
     .make = []() -> std::unique_ptr<strategy> { return std::make_unique<stsa>(); }}};

} // namespace
} // namespace mneme::stsa_method
