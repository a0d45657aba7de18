// STSA and STSA-E: closed-form spatial-temporal statistics aggregation (arXiv 2506.01327, WWW 2026).
//
// Task 1 adapts the net by FedAvg with a cosine head; then it is frozen. In every task each client sends sums over its
// features once, and the server solves a ridge regression for all classes seen so far:
//     H = ReLU(X W_R),  G_k = H^T H,  C_k = H^T Y                                        (eqs. 3-6)
//     G <- G + sum_k G_k,  C <- C + sum_k C_k,  W = (G + gamma I)^-1 C                    (eqs. 7-9)
// STSA-E sends C_k and the class counts of `dummies` parts of each client only; the server estimates G from them
// (eqs. 10-11). The official code reads W by cosine and clamps a coefficient: preset "official".
#include "runtime/base/triangle.hpp"
#include "runtime/training/ridge.hpp"
#include "strategies/shared/averaging.hpp"
#include "strategies/shared/gram_estimate.hpp"
#include "strategies/shared/random_features.hpp"
#include "strategies/shared/upload_privacy.hpp"
#include <ATen/TensorOperators.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/zeros.h>
#include <algorithm>
#include <numeric>
namespace mneme {
namespace {

// Axes: D features of the net, M of its random features, C classes, c classes of a task, P dummy parts of a client.

enum draws : std::uint32_t { projection_draw = first_method_purpose, dummy_draw, noise_draw, mask_draw };
enum class adaptation_kind : std::uint8_t { federated, none };
enum class estimator_kind : std::uint8_t { exact, estimated };
enum class dummy_split : std::uint8_t { random, stratified, file };
enum class noise_place : std::uint8_t { none, sums, counts, both };

struct options {
  adaptation_kind adaptation = adaptation_kind::federated;
  std::int64_t adaptation_rounds = 100;
  std::int64_t width = 5000; // M; 0: H = X
  std::filesystem::path projection_file{};
  double ridge = 1e4; // gamma, absolute: it grows with the square of the features' scale, not with rows
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
  [[nodiscard]] std::int64_t parts() const { return estimated() ? dummies : 1; }
};

/// What both halves know.
struct plan_of_run {
  options with{};
  method_setup setup{};
  at::Tensor projection{}; // [D, M] float64, or undefined

  [[nodiscard]] std::int64_t adaptation_rounds() const {
    return with.adaptation == adaptation_kind::federated ? with.adaptation_rounds : 0;
  }
  [[nodiscard]] bool adapts(const round_place& where) const {
    return where.task.value == 0 && where.round_of_task < adaptation_rounds();
  }
  [[nodiscard]] std::int64_t width() const {
    return projection.defined() ? projection.size(1) : setup.net->feature_width();
  }
  [[nodiscard]] mask_ring ring(task_id task) const {
    return {.key = {.seed = setup.seed, .what = mask_draw, .task = task}, .clients = setup.clients};
  }
};

// -- client half ------------------------------------------------------------------------------------------------------

using part_list = std::shared_ptr<const std::vector<std::int32_t>>;

/// The dummy client of each row: all rows shuffled and cut into parts of floor(n / P), the last with the remainder, as
/// the official code does (with fewer rows than parts the last one has everything); or dealt class by class.
part_list dummy_parts(const sample_view& samples, std::int64_t parts, dummy_split split, const rng_key& key) {
  if (split == dummy_split::file)
    return samples.marks;
  std::vector<std::int64_t> order(static_cast<std::size_t>(samples.size()));
  std::iota(order.begin(), order.end(), 0);
  rng_stream(key).shuffle(std::span(order));
  const auto label = [&](std::int64_t i) {
    return samples.source->label((*samples.rows)[static_cast<std::size_t>(i)]);
  };
  if (split == dummy_split::stratified)
    std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return label(a) < label(b); });
  const auto each = samples.size() / parts;
  auto made = std::make_shared<std::vector<std::int32_t>>(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    const auto at = static_cast<std::int64_t>(i);
    const auto part = split == dummy_split::stratified ? at % parts
                      : each == 0                      ? parts - 1
                                                       : std::min(at / each, parts - 1);
    (*made)[static_cast<std::size_t>(order[i])] = static_cast<std::int32_t>(part);
  }
  return made;
}

// -- server half ------------------------------------------------------------------------------------------------------

/// Compute job: W for the classes seen so far, float32.
tensor_map solve(const tensor_map& in) {
  tensor_map out;
  out.put("readout", solve_ridge(in.at("gram"), in.at("sums"), in.at("ridge").item<double>()).to(at::kFloat));
  return out;
}

class stsa_server final : public server_half {
public:
  explicit stsa_server(std::shared_ptr<const plan_of_run> run)
      : run_(std::move(run)), adaptation_(run_->setup), weights_(run_->setup.initial) {}

  task<task_plan> open_task(server_context&, const round_place& where) override {
    const auto adaptation = where.task.value == 0 ? run_->adaptation_rounds() : 0;
    co_return task_plan{.rounds = adaptation + 1, .everybody = true, .clients_without_rows = true};
  }

  /// The frozen net goes to everybody who takes part in the first statistics, and later to newcomers only.
  broadcast open_round(const round_place& where) override {
    if (run_->adapts(where))
      return adaptation_.open_round(where);
    const bool known = run_->adaptation_rounds() == 0 || where.task.value > 0;
    return {.place = {}, .weights = known ? nullptr : weights_, .extra = nullptr, .once = known ? weights_ : nullptr};
  }

  void fold(const delivery& in) override {
    if (in.upload->find(flat_weights) || !in.upload->find("sums")) {
      if (in.rows > 0) // nothing is learnt without rows
        adaptation_.fold(in);
      return;
    }
    present_.push_back(in.from);
    if (run_->with.estimated())
      held_.add(in.upload->at("sums"), in.upload->at("counts"));
    else
      add(*in.upload, in.rows);
  }

  task<bool> close_round(server_context& ctx, const round_place& where) override {
    if (run_->adapts(where)) {
      auto step = adaptation_.close_round(ctx, where);
      auto done = co_await step;
      weights_ = adaptation_.predict().weights;
      co_return done;
    }
    frozen_ = true;
    const auto classes = where.current;
    if (!sums_.defined()) {
      gram_ = at::zeros({triangle_size(run_->width())}, at::kDouble);
      sums_ = at::zeros({run_->setup.classes, run_->width()}, at::kDouble);
    }
    if (run_->with.estimated()) {
      held_.add_to(sums_, classes.low);
      const estimate_rules rules{.kappa = run_->with.kappa, .clamp_b = run_->with.clamp_b};
      auto asked = held_.take(gram_, std::ssize(present_) * run_->with.dummies, rules);
      auto estimating = ctx.compute({.name = "estimate", .run = &estimate_grams, .in = asked});
      auto estimated = co_await estimating;
      gram_ = estimated.out->at("gram");
    } else {
      take_sums(where);
    }
    if (where.task.value == 0)
      first_diagonal_ = mean_diagonal(gram_);
    auto equations = equations_of(where.opened);
    auto solving = ctx.compute({.name = "ridge solve", .run = &solve, .in = equations});
    auto solved = co_await solving;
    auto readout = at::zeros({run_->setup.classes, run_->width()}, at::kFloat);
    readout.narrow(0, 0, where.opened.high).copy_(solved.out->at("readout"));
    readout_ = readout;
    present_.clear();
    uploaded_floats_ += paper_floats(classes.size());
    triangle_floats_ += triangle_floats(classes.size());
    co_return true;
  }

  predictor predict() const override {
    if (!readout_.defined())
      return {.net = run_->setup.net, .weights = weights_, .frozen = frozen_};
    return {.net = run_->setup.net,
            .weights = weights_,
            .kind = run_->with.readout,
            .projection = run_->projection,
            .readout = readout_,
            .frozen = true};
  }

  void persist(archive& all) override {
    adaptation_.persist(all);
    all(weights_)(frozen_)(gram_)(sums_)(task_gram_)(task_sums_)(held_)(present_).frozen(readout_);
    all(uploaded_floats_)(triangle_floats_)(first_diagonal_);
  }

  /// Uplink of one client over the whole run, as the paper counts it: float32, the square Gram matrix, without task 1's
  /// adaptation (Table 5; its "MB" are MiB).
  std::map<std::string, double> figures() const override {
    constexpr double mib = 1024.0 * 1024.0;
    std::map<std::string, double> all{{"paper_upload_mib", uploaded_floats_ * 4.0 / mib}};
    if (!run_->with.estimated())
      all["paper_upload_triangle_mib"] = triangle_floats_ * 4.0 / mib;
    if (first_diagonal_ > 0.0)
      all["ridge_relative"] = run_->with.ridge / first_diagonal_;
    return all;
  }

private:
  /// 4 bytes each: M^2 + M c, or P (M c + c).
  [[nodiscard]] double paper_floats(std::int64_t classes) const {
    const auto m = static_cast<double>(run_->width()), c = static_cast<double>(classes);
    return run_->with.estimated() ? static_cast<double>(run_->with.dummies) * (m * c + c) : m * m + m * c;
  }
  [[nodiscard]] double triangle_floats(std::int64_t classes) const {
    const auto m = static_cast<double>(run_->width());
    return m * (m + 1.0) / 2.0 + m * static_cast<double>(classes);
  }

  /// Exact: sums of the open task, in delivery order.
  void add(const tensor_map& upload, std::int64_t rows) {
    if (rows == 0 && !run_->with.secure_sum && run_->with.noise_on == noise_place::none)
      return; // zeros
    const auto &gram = upload.at("gram"), &sums = upload.at("sums");
    if (run_->with.secure_sum) { // integers, which wrap: kept apart until they are complete
      if (!task_gram_.defined()) {
        task_gram_ = at::zeros(gram.sizes(), gram.options());
        task_sums_ = at::zeros(sums.sizes(), sums.options());
      }
      task_gram_.add_(gram);
      task_sums_.add_(sums);
      return;
    }
    if (!sums_.defined()) {
      gram_ = at::zeros({triangle_size(run_->width())}, gram.options());
      sums_ = at::zeros({run_->setup.classes, run_->width()}, gram.options());
    }
    gram_.add_(gram);
    if (!task_sums_.defined())
      task_sums_ = at::zeros(sums.sizes(), sums.options());
    task_sums_.add_(sums);
  }

  /// What solve() works on.
  [[nodiscard]] tensors_ref equations_of(class_range seen) const {
    auto made = std::make_shared<tensor_map>();
    made->put("gram", gram_);
    made->put("sums", sums_.narrow(0, 0, seen.high));
    made->put("ridge", at::scalar_tensor(run_->with.ridge, at::kDouble));
    return made;
  }

  /// Closes the sums of the task: its classes' rows of C.
  void take_sums(const round_place& where) {
    if (!task_sums_.defined())
      return;
    if (run_->with.secure_sum) {
      std::sort(present_.begin(), present_.end());
      auto ring = run_->ring(where.task);
      ring.key.index = mask_index("gram");
      gram_.add_(unmasked(task_gram_, present_, ring));
      ring.key.index = mask_index("sums");
      task_sums_ = unmasked(task_sums_, present_, ring);
    }
    sums_.narrow(0, where.current.low, where.current.size())
        .add_(task_sums_.view({where.current.size(), run_->width()}));
    task_gram_ = task_sums_ = at::Tensor{};
  }

  std::shared_ptr<const plan_of_run> run_;
  averaging_server adaptation_;
  tensors_ref weights_; // of the net: frozen once statistics are made
  bool frozen_ = false;
  at::Tensor gram_, sums_;           // G, a triangle, and C transposed [C, M], float64
  at::Tensor task_gram_, task_sums_; // of the open task
  held_sums held_;                   // estimated: of the open task
  std::vector<client_id> present_;   // whose statistics have come in the open round
  at::Tensor readout_;               // W transposed [C, M] float32
  double uploaded_floats_ = 0.0, triangle_floats_ = 0.0, first_diagonal_ = 0.0;
};

// -- the method -------------------------------------------------------------------------------------------------------

class stsa final : public averaging_method {
public:
  void keys(key_table& table) override;
  std::vector<preset> presets() const override;
  std::string defaults() const override { return "[strategy]\nweighting = \"uniform\"\n"; }
  head_kind head() const override { return head_kind::cosine; }
  bool needs_round_barrier() const override { return true; } // statistics of everybody, each once
  bool foretells_uploads() const override { return false; }  // statistics are no weights
  std::filesystem::path feature_folder() const override { return with_.feature_cache; }
  row_mark_column row_marks() const override {
    const bool wanted = with_.estimated() && with_.split == dummy_split::file;
    return wanted ? row_mark_column{.name = "dummy", .below = with_.dummies} : row_mark_column{};
  }
  std::map<std::string, std::filesystem::path> tensor_files() const override {
    if (with_.projection_file.empty())
      return {};
    return {{"projection_file", with_.projection_file}};
  }
  std::string objection(const model& net) const override;
  findings objections(const method_setup& setup) const override;
  void prepare(const method_setup& setup) override;
  task<client_result> client_round(client_context& ctx, const broadcast& in) const override;
  std::unique_ptr<server_half> make_server() const override { return std::make_unique<stsa_server>(run_); }

protected:
  /// The schedule spans the adaptation, not the round of statistics after it.
  void adjust(train_job& job, const broadcast& in) const override {
    job.options = options_for_round(setup().training, setup().trainable, covered(in.place), in.place.round_of_task,
                                    run_->adaptation_rounds());
  }

private:
  [[nodiscard]] statistics_job statistics_of(const client_context& ctx, const broadcast& in) const;
  [[nodiscard]] disguise disguise_of(const client_context& ctx) const;

  options with_;
  std::shared_ptr<const plan_of_run> run_;
};

void stsa::prepare(const method_setup& setup) {
  auto run = std::make_shared<plan_of_run>();
  run->with = with_;
  run->setup = setup;
  const auto file = setup.files.find("projection_file");
  if (file != setup.files.end())
    run->projection = file->second.at("W_R").to(at::kDouble).contiguous();
  else if (with_.width > 0)
    run->projection =
        random_projection({.seed = setup.seed, .what = projection_draw}, setup.net->feature_width(), with_.width);
  if (run->adaptation_rounds() > 0)
    averaging_method::prepare(setup);
  run_ = std::move(run);
}

task<client_result> stsa::client_round(client_context& ctx, const broadcast& in) const {
  if (run_->adapts(in.place)) {
    auto training = averaging_method::client_round(ctx, in);
    auto trained = co_await training;
    co_return trained;
  }
  auto summing = ctx.statistics(statistics_of(ctx, in));
  auto sums = co_await summing;
  auto made = std::make_shared<tensor_map>();
  if (sums.gram.defined())
    made->put("gram", sums.gram);
  made->put("sums", sums.sums);
  if (with_.estimated())
    made->put("counts", sums.counts);
  const auto how = disguise_of(ctx);
  if (how.changes()) {
    made->put("disguise", as_tensor(how));
    tensors_ref plain = std::move(made);
    auto hiding = ctx.compute({.name = "privacy", .run = &hidden, .in = plain});
    auto sent = co_await hiding;
    co_return client_result{.upload = sent.out, .memory = nullptr, .rows = ctx.samples().size()};
  }
  co_return client_result{.upload = made, .memory = nullptr, .rows = ctx.samples().size()};
}

statistics_job stsa::statistics_of(const client_context& ctx, const broadcast& in) const {
  statistics_job job{.net = run_->setup.net,
                     .weights = in.weights ? in.weights : in.once,
                     .samples = ctx.samples(),
                     .projection = run_->projection,
                     .gram = !with_.estimated(),
                     .classes = in.place.current,
                     .frozen = true};
  if (with_.estimated()) {
    job.parts = with_.dummies;
    job.part_of = dummy_parts(ctx.samples(), with_.dummies, with_.split, ctx.stream(dummy_draw));
  }
  return job;
}

disguise stsa::disguise_of(const client_context& ctx) const {
  disguise how{.noise = with_.noise_scale * with_.noise_std,
               .on_sums = with_.noise_on == noise_place::sums || with_.noise_on == noise_place::both,
               .on_counts = with_.noise_on == noise_place::counts || with_.noise_on == noise_place::both,
               .masked = with_.secure_sum,
               .noise_key = ctx.stream(noise_draw)};
  how.ring = run_->ring(how.noise_key.task);
  if (how.noise == 0.0) // no noise is no change, to the bit
    how.on_sums = how.on_counts = false;
  return how;
}

std::string stsa::objection(const model& net) const {
  return with_.adaptation == adaptation_kind::none ? std::string{} : averaging_method::objection(net);
}

findings stsa::objections(const method_setup& setup) const {
  findings all;
  const auto width = setup.net->feature_width();
  if (const auto file = setup.files.find("projection_file"); file != setup.files.end()) {
    const auto* found = file->second.find("W_R");
    if (!found)
      all.push_back({"strategy.projection_file", with_.projection_file.string() +
                                                     ": found no tensor 'W_R'; expected W_R of shape [" +
                                                     std::to_string(width) + ", projection width]"});
    else if (found->dim() != 2 || found->size(0) != width || found->size(1) < 1 ||
             !at::isFloatingType(found->scalar_type()))
      all.push_back({"strategy.projection_file",
                     with_.projection_file.string() + ": found W_R of shape " + c10::str(found->sizes()) + ", " +
                         c10::toString(found->scalar_type()) + "; expected floating-point numbers of shape [" +
                         std::to_string(width) + ", projection width], as the net has " + std::to_string(width) +
                         " features"});
  }
  if (with_.secure_sum && with_.estimated())
    all.push_back({"strategy.secure_sum",
                   "secure_sum = true with estimator = \"estimated\": the server needs each dummy "
                   "client's sums, not their total; expected estimator = \"exact\""});
  if (!with_.estimated() && (with_.noise_on == noise_place::counts || with_.noise_on == noise_place::both))
    all.push_back({"strategy.noise_on",
                   "noise on counts with estimator = \"exact\", which sends none; expected \"none\" or "
                   "\"sums\", or estimator = \"estimated\""});
  return all;
}

void stsa::keys(key_table& table) {
  table.choice("adaptation", with_.adaptation,
               {{"federated", adaptation_kind::federated}, {"none", adaptation_kind::none}},
               "Whether task 1 first trains the net by FedAvg, or it is taken as it is given.");
  table.integer("adaptation_rounds", with_.adaptation_rounds, {.low = 1, .high = 1'000'000},
                "federated: rounds of training in task 1, before its statistics.");
  table.integer("projection_width", with_.width, {.low = 0, .high = 100'000},
                "Random features M; 0: the net's features as they are.");
  table.path("projection_file", with_.projection_file,
             "safetensors with the projection, a tensor W_R [features, M] that sets the width; empty: it is drawn.");
  table.number("ridge", with_.ridge, {.low = 0.0, .open_low = true}, "gamma of the ridge regression, absolute.");
  table.choice("readout", with_.readout, {{"linear", readout_kind::linear}, {"cosine", readout_kind::cosine}},
               "Scores W_c . phi as in the paper, or their cosine as in the official code.");
  table.choice("estimator", with_.estimator,
               {{"exact", estimator_kind::exact}, {"estimated", estimator_kind::estimated}},
               "Clients send Gram matrices (STSA), or class sums of dummy clients only (STSA-E).");
  table.integer("dummies", with_.dummies, {.low = 1, .high = 100'000}, "estimated: dummy clients of each client.");
  table.choice("kappa", with_.kappa, {{"total", client_count::total}, {"nonempty", client_count::nonempty}},
               "estimated: the scatter is divided by all dummy clients (paper), or by those with rows (unbiased).");
  table.flag("clamp_b", with_.clamp_b, "estimated: negative coefficients become 0, as in the official code.");
  table.choice("dummy_split", with_.split,
               {{"random", dummy_split::random}, {"stratified", dummy_split::stratified}, {"file", dummy_split::file}},
               "estimated: how a client's rows are dealt to its dummies; file: column `dummy` of partition.file.");
  table.path("feature_cache", with_.feature_cache,
             "Folder where features of frozen nets are kept between runs; empty: in memory only.");
  table.number("noise_scale", with_.noise_scale, {.low = 0.0}, "Privacy noise: q of value + q eps.");
  table.number("noise_std", with_.noise_std, {.low = 0.0}, "Privacy noise: s of eps ~ N(0, s^2).");
  table.choice("noise_on", with_.noise_on,
               {{"none", noise_place::none},
                {"sums", noise_place::sums},
                {"counts", noise_place::counts},
                {"both", noise_place::both}},
               "What noise is added to: Gram matrix and class sums, class counts (estimated), or both.");
  table.flag("secure_sum", with_.secure_sum, "exact: uploads are hidden by pairwise masks that cancel in their sum.");
}

std::vector<preset> stsa::presets() const {
  const std::string residual = R"([strategy]
adaptation_rounds = 100
projection_width = 5000
ridge = 1e4
dummies = 50
[training]
epochs = 2
batch = 128
learning_rate = 0.04
schedule = "cosine"
momentum = 0.9
weight_decay = 5e-4
augment = "crop-flip-jitter"
)";
  const std::string paper = "readout = \"linear\"\nkappa = \"total\"\nclamp_b = false\n";
  const std::string transformer = R"([strategy]
adaptation_rounds = 10
projection_width = 1250
ridge = 1e6
dummies = 10
[training]
epochs = 2
batch = 128
learning_rate = 0.2
schedule = "cosine"
momentum = 0.9
weight_decay = 5e-4
)";
  const auto with = [](std::string base, const std::string& keys) { return base.insert(base.find('\n') + 1, keys); };
  return {{"paper", "ResNet-18 as in the paper: linear read-out, kappa over all dummy clients", with(residual, paper)},
          {"paper-vit", "ViT as in the paper: 1,250 random features, ridge 1e6, 10 dummy clients",
           with(transformer, paper)},
          {"official", "ResNet-18 as in the public code: cosine read-out, negative coefficients clamped",
           with(residual, "readout = \"cosine\"\nkappa = \"total\"\nclamp_b = true\n")}};
}

const strategy_registration line{
    {.name = "stsa",
     .summary = "closed-form statistics of a frozen net, one round a task (STSA, arXiv 2506.01327)",
     .make = []() -> std::unique_ptr<strategy> { return std::make_unique<stsa>(); }}};

} // namespace
} // namespace mneme
