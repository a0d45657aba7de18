// LANDER: federated class-incremental learning with text-anchored features and data-free replay (Tran et al. 2024,
// "Text-Enhanced Data-free Approach for Federated Class-Incremental Learning", CVPR), from its public code. A map of
// the features is pulled to a fixed embedding of the class's name, but not within a radius. After each task the server
// trains a generator through its model, without data; clients learn the next task on their rows and on what the
// generator has made:
//     task 1:  CE + l bound,  bound = relu(|map - anchor|^2 / E - r)
//     later:   cur (CE over the new classes + l bound) + pre (KD over the old ones + |map - map of the teacher|^2 / E)
//     cur = 0.2 (1 + 1 / a) / b,  pre = 0.4 a b,  a = log2(C_seen / 2 + 1),  b = sqrt(C_old / C_seen).
// The map is a linear layer of the features, which is kept as further rows of the head.
//
// What is ours: without real text embeddings (label_embeddings) anchors are random vectors of unit variance; the noise
// layer is drawn in each round and not trained; the model of a task is that of its last round, not the best by training
// loss; images are bytes, as those that the code stores; the pool is sent with every round; learning rates follow
// [training], whose cosine ends at 0; rows of the head for classes to come decay with the others.
#include "strategies/lander/anchored_loss.hpp"
#include "strategies/lander/image_dreams.hpp"
#include "strategies/shared/averaging.hpp"
#include <ATen/ATen.h>
#include <cmath>
#include <fmt/format.h>
#include <limits>
namespace mneme {

// -- what a client minimises ------------------------------------------------------------------------------------------

part_weights part_weights_of(std::int64_t old_classes, std::int64_t seen_classes) {
  if (old_classes == 0)
    return {};
  const double a = std::log2(static_cast<double>(seen_classes) / 2.0 + 1.0);
  const double b = std::sqrt(static_cast<double>(old_classes) / static_cast<double>(seen_classes));
  return {.fresh = 0.2 * (1.0 + 1.0 / a) / b, .old = 0.4 * a * b};
}

} // namespace mneme
namespace mneme::lander_method {
namespace {

class anchored_loss final : public loss {
public:
  explicit anchored_loss(anchored_terms terms)
      : terms_(std::move(terms)), parts_(part_weights_of(terms_.old, terms_.opened)),
        identity_(fmt::format("anchored {} {} {} {} {} {} {}", terms_.classes, terms_.old, terms_.opened,
                              terms_.anchoring, terms_.radius, terms_.temperature, terms_.anchors.size(1))) {}
  std::string identity() const override { return identity_; }

  /// Model by model, so that the bits of one do not depend on the others.
  loss_output operator()(const loss_input& in) const override {
    const auto options = in.logits.options().dtype(at::kDouble);
    loss_output out{.d_logits = at::zeros_like(in.logits)};
    for (const char* name : {"cross_entropy", "anchoring", "distillation", "map_distillation"})
      out.terms.push_back({name, at::zeros({in.logits.size(0)}, options)});
    const auto own = in.logits.size(1) - in.replayed;
    for (std::int64_t k = 0; k < in.logits.size(0); ++k) {
      const auto part = [&](const at::Tensor& of_step, std::int64_t first, std::int64_t rows) {
        return of_step[k].narrow(0, first, rows);
      };
      const auto value_of = [&](std::size_t term) { return out.terms[term].value[k]; };
      learn(part(in.logits, 0, own), part(in.labels, 0, own), part(in.row_weight, 0, own), part(out.d_logits, 0, own),
            {value_of(0), value_of(1)});
      if (in.replayed > 0)
        keep(part(in.logits, own, in.replayed), part(in.teacher, own, in.replayed),
             part(in.row_weight, own, in.replayed), part(out.d_logits, own, in.replayed), {value_of(2), value_of(3)});
    }
    out.values = out.terms[0].value + out.terms[1].value + out.terms[2].value + out.terms[3].value;
    return out;
  }

private:
  /// What rows add to the loss: by the classes, and by the map into the space of the anchors.
  struct row_values {
    at::Tensor of_classes{}, of_map{}; // [] float64 each
  };

  /// Cross-entropy over the new classes, and the bounded pull to the anchors. @param weight [B], 0 where padded
  void learn(const at::Tensor& logits, const at::Tensor& labels, const at::Tensor& weight, at::Tensor d,
             row_values value) const {
    const auto fresh = terms_.opened - terms_.old, embedding = terms_.anchors.size(1);
    const auto real = weight > 0, padded = real.logical_not().unsqueeze(1);
    const auto shares = (weight * parts_.fresh).unsqueeze(1); // [B, 1]
    const auto places = (labels - terms_.old).clamp(0, fresh - 1).unsqueeze(1);
    const auto log_p = at::log_softmax(logits.narrow(1, terms_.old, fresh), 1);
    auto slope = at::scatter_add(log_p.exp(), 1, places, at::full_like(places, -1, log_p.options()));
    d.narrow(1, terms_.old, fresh).add_((slope * shares).masked_fill(padded, 0));
    value.of_classes.sub_((log_p.gather(1, places) * shares).masked_fill(padded, 0).sum(at::kDouble));
    if (embedding == 0)
      return;
    const auto away = logits.narrow(1, terms_.classes, embedding) -
                      terms_.anchors.to(logits.device()).index_select(0, labels.clamp_min(0)); // [B, E]
    const auto beyond = away.square().mean(1) - terms_.radius;
    const auto pulled = (beyond > 0).logical_and(real).to(at::kFloat) * weight * (parts_.fresh * terms_.anchoring);
    value.of_map.add_((beyond * pulled).sum(at::kDouble));
    d.narrow(1, terms_.classes, embedding).add_(away * (pulled * (2.0 / static_cast<double>(embedding))).unsqueeze(1));
  }

  /// Distillation of the old classes, -sum softmax(t / tau) log softmax(s / tau), and of the map.
  void keep(const at::Tensor& logits, const at::Tensor& taught, const at::Tensor& weight, at::Tensor d,
            row_values value) const {
    const auto embedding = terms_.anchors.size(1);
    const auto padded = (weight <= 0).unsqueeze(1), shares = (weight * parts_.old).unsqueeze(1);
    const auto log_q = at::log_softmax(logits.narrow(1, 0, terms_.old) / terms_.temperature, 1);
    const auto p = at::log_softmax(taught.narrow(1, 0, terms_.old) / terms_.temperature, 1).exp();
    value.of_classes.sub_((p * log_q * shares).masked_fill(padded, 0).sum(at::kDouble));
    d.narrow(1, 0, terms_.old).add_(((log_q.exp() - p) * (shares / terms_.temperature)).masked_fill(padded, 0));
    if (embedding == 0)
      return;
    const auto away = (logits - taught).narrow(1, terms_.classes, embedding);
    const double mean = 1.0 / static_cast<double>(embedding);
    value.of_map.add_((away.square() * shares).masked_fill(padded, 0).sum(at::kDouble) * mean);
    d.narrow(1, terms_.classes, embedding).add_((away * (shares * (2.0 * mean))).masked_fill(padded, 0));
  }

  anchored_terms terms_;
  part_weights parts_;
  std::string identity_;
};

} // namespace
} // namespace mneme::lander_method

mneme::loss_ref mneme::anchored_objective(const anchored_terms& terms) {
  return std::make_shared<lander_method::anchored_loss>(terms);
}

// -- the method's parts -----------------------------------------------------------------------------------------------

namespace mneme::lander_method {
namespace {

// Axes: C classes of the run, E numbers of an anchor, P weights.

enum draws : std::uint32_t { anchor_draw = first_method_purpose + 91, dream_draw, student_draw };

struct options {
  std::int64_t embedding = 512;                              // E
  double anchoring = 5.0, radius = 0.015, temperature = 2.0; // l, r, tau
  std::filesystem::path label_embeddings{};
  dream_settings dreams{};
};

/// What both halves share.
struct run_settings {
  method_setup setup{};
  options with{};
  at::Tensor anchors{}; // [C, E]
};

// -- server half ------------------------------------------------------------------------------------------------------

class lander_server final : public averaging_server {
public:
  explicit lander_server(std::shared_ptr<const run_settings> run)
      : averaging_server(run->setup), run_(std::move(run)) {}

  /// Before a later task the generator is trained through the model of the tasks so far.
  task<task_plan> open_task(server_context& ctx, const round_place& place) override {
    if (place.task.value > 0) {
      auto dreaming = ctx.run(dreaming_job(place));
      const auto dreamt = co_await dreaming;
      auto pool = std::make_shared<tensor_map>();
      pool->put("teacher", weights());
      pool->put("images", dreamt.out->at("images"));
      pool->put("labels", dreamt.out->at("labels"));
      pool_ = pool;
      objective_ = dreamt.out->at("objective").min().item<double>();
      statistics_ = dreamt.out->at("statistics").min().item<double>();
    }
    co_return task_plan{};
  }
  broadcast open_round(const round_place& place) override {
    auto sent = averaging_server::open_round(place);
    sent.extra = pool_;
    return sent;
  }
  std::map<std::string, double> figures() const override {
    return {{"dream_objective", objective_}, {"dream_statistics", statistics_}};
  }
  void persist(archive& state) override {
    averaging_server::persist(state);
    state(pool_)(objective_)(statistics_);
  }

private:
  [[nodiscard]] program_job dreaming_job(const round_place& place) const {
    const auto& setup = run_->setup;
    auto settings = run_->with.dreams;
    settings.opened = place.current.low;
    auto in = std::make_shared<tensor_map>();
    in->put(flat_weights, weights());
    in->put("student", initial_weights(*setup.net, setup.seed + 1));
    in->put("anchors", run_->anchors);
    constexpr client_id server_itself{std::numeric_limits<std::uint32_t>::max()};
    program_job job{.body = dream_program(setup.net, settings), .in = in};
    job.stream = {.seed = setup.seed, .purpose = dream_draw, .client = server_itself, .task = place.task};
    return job;
  }

  std::shared_ptr<const run_settings> run_;
  tensors_ref pool_{};                        // teacher, images, labels; null in task 1
  double objective_ = 0.0, statistics_ = 0.0; // the best round's, of the last task
};

// -- client half ------------------------------------------------------------------------------------------------------

class lander final : public averaging_method {
public:
  void keys(key_table& table) override;
  method_needs needs() const override {
    method_needs needed{.further_outputs = with_.embedding,
                        .defaults = "[training]\nepochs = 2\nbatch = 128\nlearning_rate = 0.04\nmomentum = 0.9\n"
                                    "weight_decay = 5e-4\nschedule = \"cosine\"\n"
                                    "[strategy]\nweighting = \"uniform\"\n"};
    if (!with_.label_embeddings.empty())
      needed.tensor_files = {{"label_embeddings", with_.label_embeddings}};
    return needed;
  }
  diagnostics check(const method_setup& setup) const override;
  void prepare(const method_setup& setup) override;
  task<client_result> client_round(client_context& ctx, const broadcast& in) const override;
  std::unique_ptr<server_half> make_server() const override { return std::make_unique<lander_server>(run_); }

private:
  options with_;
  std::shared_ptr<const run_settings> run_;
};

void lander::prepare(const method_setup& setup) {
  averaging_method::prepare(setup);
  auto run = std::make_shared<run_settings>(run_settings{.setup = setup, .with = with_});
  const auto embedding = setup.net->classes() - setup.classes; // as many as the net was built with
  run->anchors = at::empty({setup.classes, embedding}, at::kFloat);
  rng_stream draw({.seed = setup.seed, .purpose = anchor_draw});
  for (std::int64_t i = 0; i < run->anchors.numel(); ++i)
    run->anchors.mutable_data_ptr<float>()[i] = static_cast<float>(draw.normal());
  if (const auto file = setup.files.find("label_embeddings"); file != setup.files.end())
    run->anchors = file->second.at("embeddings").to(at::kFloat).contiguous();
  auto& dreams = run->with.dreams;
  dreams.shape = setup.shape;
  dreams.scale = setup.scale;
  dreams.shift = setup.shift;
  dreams.classes = setup.classes;
  dreams.embedding = embedding;
  dreams.radius = with_.radius;
  dreams.bound = with_.anchoring;
  run_ = std::move(run);
}

task<client_result> lander::client_round(client_context& ctx, const broadcast& in) const {
  const auto outputs = setup().net->classes();
  auto job = local_training(setup(), ctx, in, {.samples = ctx.samples(), .classes = {0, outputs}});
  anchored_terms terms{.classes = setup().classes, .old = 0, .opened = in.place.opened.high};
  terms.anchoring = with_.anchoring;
  terms.radius = with_.radius;
  terms.temperature = with_.temperature;
  terms.anchors = run_->anchors;
  if (in.extra && in.place.current.low > 0) {
    terms.old = in.place.current.low;
    job.replay.samples = ctx.rows_of(in.extra->at("images"), in.extra->at("labels"));
    job.options.replay_rows = job.options.batch_rows > 0 ? job.options.batch_rows : job.replay.samples.size();
    job.teacher = weights_only(in.extra->at("teacher"));
    job.options.taught = {0, outputs};
  }
  job.objective = anchored_objective(terms);
  auto training = ctx.train(std::move(job));
  const auto trained = co_await training;
  co_return client_result{.upload = trained.weights, .memory = nullptr, .rows = trained.rows_seen};
}

diagnostics lander::check(const method_setup& setup) const {
  auto wrong = averaging_method::check(setup);
  if (!setup.net->mixes_rows())
    wrong.push_back({"model.name", fmt::format("'{}' has no batch normalisations, whose statistics the generator is to "
                                               "match; expected a residual net with norm = \"batch\"",
                                               setup.net->identity())});
  if (setup.trainable != trainable_part::all)
    wrong.push_back({"model.trainable", "model.trainable = \"head\": the method trains whole nets; expected \"all\""});
  for (std::size_t t = 1; t < setup.task_classes.size(); ++t)
    if (setup.task_classes[t].low != setup.task_classes[t - 1].high) {
      wrong.push_back({"tasks.kind", "tasks.kind: the generator makes rows of old classes, and tasks here repeat "
                                     "classes; expected \"class-incremental\""});
      break;
    }
  if (with_.dreams.warm_up > with_.dreams.rounds)
    wrong.push_back({"strategy.warm_up", fmt::format("strategy.warm_up = {}: no round would be left to make images; "
                                                     "expected at most strategy.generator_rounds = {}",
                                                     with_.dreams.warm_up, with_.dreams.rounds)});
  if (const auto file = setup.files.find("label_embeddings"); file != setup.files.end()) {
    const auto* const embeddings = file->second.find("embeddings");
    if (!embeddings || embeddings->dim() != 2 || embeddings->size(0) != setup.classes ||
        embeddings->size(1) != with_.embedding)
      wrong.push_back({"strategy.label_embeddings",
                       fmt::format("{}: expected a tensor 'embeddings' of shape [{}, {}], a row for each class of the "
                                   "run, in its order",
                                   with_.label_embeddings.string(), setup.classes, with_.embedding)});
  }
  return wrong;
}

void lander::keys(key_table& table) {
  auto& dreams = with_.dreams;
  table.integer("embedding_width", with_.embedding, {.low = 1, .high = 65'536}, "Numbers of a label's embedding.");
  table.path("label_embeddings", with_.label_embeddings,
             "safetensors with a tensor 'embeddings' [classes, embedding_width] of texts; empty: random vectors.");
  table.number("anchoring", with_.anchoring, {.low = 0.0}, "l: weight of the pull to the embeddings.");
  table.number("radius", with_.radius, {.low = 0.0}, "r: within it nothing pulls.");
  table.number("temperature", with_.temperature, {.low = 0.0, .open_low = true}, "tau of the distillation.");
  table.integer("generator_rounds", dreams.rounds, {.low = 1, .high = 100'000},
                "Rounds of the generator's training after each task; each leaves its best batch.");
  table.integer("warm_up", dreams.warm_up, {.low = 0, .high = 100'000},
                "The first so many have no student to fool, and leave one batch together.");
  table.integer("generator_steps", dreams.steps, {.low = 1, .high = 100'000}, "Steps of Adam in a round.");
  table.integer("generator_batch", dreams.batch, {.low = 1, .high = 100'000}, "Images of a round.");
  table.number("generator_rate", dreams.rate, {.low = 0.0, .open_low = true}, "Adam's learning rate.");
  table.integer("generator_width", dreams.filters, {.low = 1, .high = 65'536},
                "Filters of the generator's last convolution; the others have twice as many.");
  table.integer("noise_width", dreams.noise, {.low = 1, .high = 65'536}, "Numbers behind the noise layer.");
  table.integer("student_steps", dreams.student_steps, {.low = 0, .high = 100'000}, "Steps of the student in a round.");
  table.number("student_rate", dreams.student_rate, {.low = 0.0, .open_low = true}, "Its learning rate, of plain SGD.");
  table.number("statistics_weight", dreams.statistics, {.low = 0.0}, "Weight of matching batch statistics.");
  table.number("label_weight", dreams.labels, {.low = 0.0}, "Weight of the generator's cross-entropy.");
  table.number("adversary_weight", dreams.adversary, {.low = 0.0}, "Weight of fooling the student.");
}

const strategy_registration line{
    {.name = "lander",
     .summary = "features anchored at label texts, data-free generated replay (LANDER, Tran et al. 2024, CVPR)",
     .make = []() -> std::unique_ptr<strategy> { return std::make_unique<lander>(); }}};

} // namespace
} // namespace mneme::lander_method
