// LANDER: federated class-incremental learning with text-anchored features and data-free replay (M.-T. Tran et al.,
// "Text-Enhanced Data-free Approach for Federated Class-Incremental Learning", CVPR 2024). "map" is a linear map of the
// features. The loss moves the map towards the anchor of the class, a fixed embedding of the class name with E entries,
// until it is within a radius r of the anchor. After each task, the server trains an image generator through the global
// model, without data. Clients train on their own rows and on generated images:
//     task 1:  CE + l bound,  bound = relu(mean over the batch of |map - anchor|^2 / E - r)
//     later:   cur (CE over new classes + l bound) + pre (KD over old classes + |map - teacher's map|^2 / E)
//     cur = 0.2 (1 + 1 / a) / b,  pre = 0.4 a b,  a = log2(C_seen / 2 + 1),  b = sqrt(C_old / C_seen).
//
// The official code (github.com/tmtuan1307/LANDER, commit 44d7acc; preset "official") passes real and replayed rows
// through the net separately, so each kind has its own batch statistics. The final model of a task is the model at the
// start of the round whose first epoch has the lowest loss per step (task_model). Therefore the model after the last
// round is never chosen. If the image pool has more than pool_max files, only the first ones in the order of file names
// are used. New head rows are drawn at the start of a task.
//
// Ours: the steps of generator, student and clients match those of the official code (docs/fidelity.md). The linear map
// is stored as additional rows of the head. Without text embeddings (label_embeddings), anchors are random vectors with
// the mean and deviation of the official embeddings. Head rows of future classes are subject to weight decay unless
// new_class_head = "drawn". Every broadcast contains the pool, as bytes. With few rounds or partial participation, the
// model that task_model = "best-round" selects is often hardly trained; task_model = "last-round" uses the model after
// the last round.
#include "runtime/training/step_plan.hpp"
#include "strategies/lander/anchored_loss.hpp"
#include "strategies/lander/first_epoch_loss.hpp"
#include "strategies/lander/image_synthesis.hpp"
#include "strategies/shared/averaging.hpp"
#include "strategies/shared/image_generator.hpp"
#include "strategies/shared/training_keys.hpp"
#include <ATen/ATen.h>
#include <cmath>
#include <fmt/format.h>
#include <limits>
namespace mneme::lander_method {
namespace {

// Axes: C classes of the run, E numbers of an anchor, P weights, N images of the pool.

enum draws : std::uint32_t { anchor_draw = first_method_purpose + 91, dream_draw, student_draw, head_draw };

/// Selection of the model at the end of a task.
enum class task_model : std::uint8_t { last_round, best_round };

struct options {
  std::int64_t embedding = 512;                              // E
  double anchoring = 5.0, radius = 0.015, temperature = 2.0; // the parameters l, r and tau
  bool anchoring_first = true;
  double rate_floor = 0.0;
  replay_pass replay_by = replay_pass::separate;
  bool replay_jitter = false, replay_short_last = false, draws_rows = false;
  task_model ends_with = task_model::best_round;
  std::int64_t pool_max = 0;
  std::filesystem::path label_embeddings{};
  synthesis_settings dreams{};
};

constexpr const char* first_losses_name = "first_losses"; // [2]: sum of losses in the first epoch, and number of its
                                                          // steps

/// Settings that both halves share.
struct run_settings {
  method_setup setup{};
  options settings{};
  at::Tensor anchors{}; // [C, E]
};

// -- server half ------------------------------------------------------------------------------------------------------

class lander_server final : public averaging_server {
public:
  explicit lander_server(std::shared_ptr<const run_settings> run)
      : averaging_server(run->setup), run_(std::move(run)) {}

  /// Before each task except the first, trains the generator through the model of the earlier tasks.
  task<task_plan> open_task(server_context& ctx, const round_info& info) override {
    if (info.task.value > 0) {
      auto dreaming = ctx.run(dreaming_job(info));
      const auto dreamt = co_await dreaming;
      keep_pool(*dreamt.out);
    }
    if (run_->settings.draws_rows)
      draw_rows(info);
    co_return task_plan{};
  }
  broadcast open_round(const round_info& info) override {
    auto sent = averaging_server::open_round(info);
    sent.extra = pool_;
    return sent;
  }
  void fold(const delivery& in) override {
    if (keeps_best() && in.rows > 0) {
      const auto& told = in.upload->at(first_losses_name);
      first_losses_ += told[0].item<double>();
      first_steps_ += told[1].item<double>();
    }
    averaging_server::fold(in);
  }
  task<void> close_round(server_context&, const round_info& info) override {
    if (first_steps_ > 0.0 && first_losses_ / first_steps_ < least_loss_) {
      least_loss_ = first_losses_ / first_steps_;
      best_ = weights();
    }
    first_losses_ = first_steps_ = 0.0;
    average();
    if (keeps_best() && info.round_of_task + 1 == info.rounds_of_task && best_.defined()) {
      set_weights(std::exchange(best_, {}));
      least_loss_ = std::numeric_limits<double>::infinity();
    }
    co_return;
  }
  std::map<std::string, double> summary_metrics() const override {
    return {{"dream_objective", objective_}, {"dream_statistics", statistics_}};
  }
  void persist(archive& state) override {
    averaging_server::persist(state);
    state(pool_)(objective_)(statistics_)(first_losses_)(first_steps_)(least_loss_).frozen(best_);
  }

private:
  [[nodiscard]] bool keeps_best() const { return run_->settings.ends_with == task_model::best_round; }

  [[nodiscard]] program_job dreaming_job(const round_info& info) const {
    const auto& setup = run_->setup;
    auto settings = run_->settings.dreams;
    settings.seen_classes = info.current_classes.low;
    auto in = std::make_shared<tensor_map>();
    in->put(flat_weights, weights());
    in->put("student", student_start(*setup.net, weights().cpu(), setup.classes,
                                     {.seed = setup.seed, .purpose = student_draw, .task = info.task}));
    in->put("anchors", run_->anchors);
    program_job job{.body = synthesis_program(setup.net, settings), .in = in};
    job.stream = {.seed = setup.seed, .purpose = dream_draw, .client = server_client_id, .task = info.task};
    return job;
  }
  void keep_pool(const tensor_map& dreamt) {
    auto images = dreamt.at("images"), labels = dreamt.at("labels");
    if (const auto most = run_->settings.pool_max; most > 0 && most < images.size(0)) {
      const auto kept = first_by_name(images.size(0), run_->settings.dreams.batch, most).to(images.device());
      images = images.index_select(0, kept);
      labels = labels.index_select(0, kept);
    }
    auto pool = std::make_shared<tensor_map>();
    pool->put("teacher", weights());
    pool->put("images", images);
    pool->put("labels", labels);
    pool_ = pool;
    objective_ = dreamt.at("objective").min().item<double>();
    statistics_ = dreamt.at("statistics").min().item<double>();
  }
  /// Draws the head rows of the task's classes from U(-sqrt(3 / D), sqrt(3 / D)), with biases 0, as when a head grows.
  void draw_rows(const round_info& info) {
    auto flat = weights().cpu().clone();
    rng_stream draw({.seed = run_->setup.seed, .purpose = head_draw, .task = info.task});
    for (const auto& entry : run_->setup.net->layout()) {
      if (!entry.head || entry.whole)
        continue;
      auto rows = as_in_files(flat, entry).clone();
      auto fresh = rows.narrow(0, info.current_classes.low, info.current_classes.size());
      fresh.zero_();
      if (entry.shape.size() > 1) {
        auto drawn = at::empty(fresh.sizes(), at::kFloat);
        const double bound = std::sqrt(3.0 / static_cast<double>(entry.shape[1]));
        for (std::int64_t i = 0; i < drawn.numel(); ++i)
          drawn.mutable_data_ptr<float>()[i] = static_cast<float>(draw.uniform(-bound, bound));
        fresh.copy_(drawn);
      }
      put_as_in_files(flat, entry, rows);
    }
    set_weights(flat.to(weights().device()));
  }

  std::shared_ptr<const run_settings> run_;
  tensors_ref pool_{};                                          // teacher, images, labels; null in the first task
  double objective_ = 0.0, statistics_ = 0.0;                   // lowest loss of the last generation, and its
                                                                // statistics term
  double first_losses_ = 0.0, first_steps_ = 0.0;               // sums over the uploads of the open round
  double least_loss_ = std::numeric_limits<double>::infinity(); // lowest mean loss among the rounds of this task
  at::Tensor best_{};                                           // [P] start weights of the round with that loss
};

// -- client half ------------------------------------------------------------------------------------------------------

class lander final : public averaging_method {
public:
  void keys(key_table& table) override;
  std::vector<preset> presets() const override {
    return {{.name = "official",
             .meaning = "a run of the official code: its schedule, augmentation and head, and 100 rounds per task",
             .toml = "[training]\nepochs = 2\nbatch = 128\nlearning_rate = 0.04\nmomentum = 0.9\nweight_decay = 5e-4\n"
                     "schedule = \"cosine\"\naugment = \"crop-flip-jitter\"\n[rounds]\nper_task = 100\n"
                     "[strategy]\nweighting = \"uniform\"\nrate_floor = 1e-3\nreplay_short_last = true\n"
                     "new_class_head = \"drawn\"\npool_max = 10000\n"}};
  }
  upload_content uploads() const override { return upload_content::weights_and_more; }
  method_needs needs() const override {
    method_needs needed{.extra_outputs = options_.embedding,
                        .round_barrier = options_.ends_with == task_model::best_round,
                        .defaults = "[training]\nepochs = 2\nbatch = 128\nlearning_rate = 0.04\nmomentum = 0.9\n"
                                    "weight_decay = 5e-4\nschedule = \"cosine\"\n"
                                    "[strategy]\nweighting = \"uniform\"\n"};
    if (!options_.label_embeddings.empty())
      needed.tensor_files = {{"label_embeddings", options_.label_embeddings}};
    return needed;
  }
  diagnostics check(const method_setup& setup) const override;
  void prepare(const method_setup& setup) override;
  task<client_result> client_round(client_context& ctx, const broadcast& in) const override;
  std::unique_ptr<server_half> make_server() const override { return std::make_unique<lander_server>(run_); }

private:
  [[nodiscard]] train_job job_of(client_context& ctx, const broadcast& in) const;
  void replay_pool(train_job& job, client_context& ctx, const tensor_map& pool) const;

  options options_;
  std::shared_ptr<const run_settings> run_;
};

void lander::prepare(const method_setup& setup) {
  averaging_method::prepare(setup);
  auto run = std::make_shared<run_settings>(run_settings{.setup = setup, .settings = options_});
  const auto embedding = setup.net->classes() - setup.classes; // number of extra outputs of the net
  run->anchors = draw_anchors(setup.classes, embedding, {.seed = setup.seed, .purpose = anchor_draw});
  if (const auto file = setup.files.find("label_embeddings"); file != setup.files.end())
    run->anchors = file->second.at("embeddings").to(at::kFloat).contiguous();
  auto& dreams = run->settings.dreams;
  dreams.shape = setup.shape;
  dreams.scale = setup.scale;
  dreams.shift = setup.shift;
  dreams.classes = setup.classes;
  dreams.embedding = embedding;
  dreams.radius = options_.radius;
  dreams.bound = options_.anchoring;
  run_ = std::move(run);
}

task<client_result> lander::client_round(client_context& ctx, const broadcast& in) const {
  auto training = ctx.train(job_of(ctx, in));
  const auto trained = co_await training;
  auto upload = trained.weights;
  if (options_.ends_with == task_model::best_round) {
    auto told = std::make_shared<tensor_map>(*upload);
    const auto& training = setup().training;
    const step_plan epoch{.rows = ctx.samples().size(), .batch_rows = training.batch, .drop_last = training.drop_last};
    const auto steps = epoch.steps();
    const auto losses = trained.observed ? trained.observed->at(first_epoch_loss).item<float>() : 0.0F;
    told->put(first_losses_name, at::tensor({losses, static_cast<float>(steps)}, at::kFloat));
    upload = told;
  }
  co_return client_result{.upload = upload, .memory = nullptr, .rows = trained.rows_seen};
}

train_job lander::job_of(client_context& ctx, const broadcast& in) const {
  auto job = local_training(setup(), ctx, in, {.samples = ctx.samples(), .classes = {0, setup().net->classes()}});
  const auto& training = setup().training;
  if (training.schedule == schedule_kind::cosine && training.learning_rate > 0.0) // the value of eta_min in PyTorch's
                                                                                  // schedule
    job.options.learning_rate = options_.rate_floor + (training.learning_rate - options_.rate_floor) *
                                                          (job.options.learning_rate / training.learning_rate);
  if (options_.ends_with == task_model::best_round)
    job.observation = first_epoch_observation();
  anchored_terms terms{.classes = setup().classes, .old = 0, .seen_classes = in.info.seen_classes.high};
  const bool later = in.extra && in.info.current_classes.low > 0;
  terms.anchoring = later || options_.anchoring_first ? options_.anchoring : 0.0;
  terms.radius = options_.radius;
  terms.temperature = options_.temperature;
  terms.anchors = run_->anchors;
  if (later) {
    terms.old = in.info.current_classes.low;
    replay_pool(job, ctx, *in.extra);
  }
  job.objective = anchored_objective(terms);
  return job;
}

/// Adds a batch of the pool to every step, with the model of the earlier tasks as teacher.
void lander::replay_pool(train_job& job, client_context& ctx, const tensor_map& pool) const {
  auto& how = job.options;
  job.replay.samples = ctx.rows_of(pool.at("images"), pool.at("labels"));
  how.replay_rows = how.batch_rows > 0 ? how.batch_rows : job.replay.samples.size();
  how.replay_by = options_.replay_by;
  how.replay_short_last = options_.replay_short_last;
  if (how.augment == augmentation_kind::crop_flip_jitter && !options_.replay_jitter)
    how.replay_augment = augmentation_kind::crop_flip;
  job.add_teacher(weights_only(pool.at("teacher")), {.classes = {0, setup().net->classes()}});
}

diagnostics lander::check(const method_setup& setup) const {
  auto errors = averaging_method::check(setup);
  append(errors, reject_label_smoothing(setup, "its losses anchor features and read unsmoothed labels"));
  for (auto& finding : validate_generation(setup))
    errors.push_back(std::move(finding));
  if (options_.dreams.warm_up > options_.dreams.rounds)
    errors.push_back({"strategy.warm_up", fmt::format("strategy.warm_up = {}: no round would be left to make images; "
                                                      "expected at most strategy.generator_rounds = {}",
                                                      options_.dreams.warm_up, options_.dreams.rounds)});
  if (const auto file = setup.files.find("label_embeddings"); file != setup.files.end()) {
    const auto* const embeddings = file->second.find("embeddings");
    if (!embeddings || embeddings->dim() != 2 || embeddings->size(0) != setup.classes ||
        embeddings->size(1) != options_.embedding)
      errors.push_back({"strategy.label_embeddings",
                        fmt::format("{}: expected a tensor 'embeddings' of shape [{}, {}], a row for each class of the "
                                    "run, in its order",
                                    options_.label_embeddings.string(), setup.classes, options_.embedding)});
  }
  return errors;
}

/// Declares the keys of generator and student.
void dream_keys(key_table& table, synthesis_settings& dreams) {
  table.integer("generator_rounds", dreams.rounds, {.low = 1, .high = 100'000},
                "Generator rounds after each task; the best batch of each is kept.");
  table.integer("warm_up", dreams.warm_up, {.low = 0, .high = 100'000},
                "Number of first rounds without the adversarial term; only the last of them adds a batch to the pool.");
  table.integer("adversary_lead", dreams.lead, {.low = 0, .high = 100'000},
                "Number of rounds after the warm-up in which the student is trained, but not yet used as adversary.");
  table.integer("generator_steps", dreams.steps, {.low = 1, .high = 100'000}, "Adam steps per round.");
  table.integer("generator_batch", dreams.batch, {.low = 1, .high = 100'000}, "Images per round.");
  table.number("generator_rate", dreams.rate, {.low = 0.0, .open_low = true},
               "Learning rate of Adam in the generator's training.");
  table.integer("generator_width", dreams.filters, {.low = 1, .high = 65'536},
                "Filters of the generator's last convolution; earlier ones have twice as many.");
  table.flag("generator_views", dreams.views,
             "Randomly crop and mirror images in each step before the model and the student read them.");
  table.integer("noise_width", dreams.noise, {.low = 1, .high = 65'536}, "Output width of a noise layer.");
  table.integer("noise_chunk", dreams.chunk, {.low = 1, .high = 100'000},
                "Images of a batch that share a noise layer; layers are drawn and trained in each round.");
  table.integer("student_steps", dreams.student_steps, {.low = 0, .high = 100'000}, "Steps of the student per round.");
  table.integer("student_batch", dreams.student_batch, {.low = 1, .high = 100'000}, "Images per student step.");
  table.number("student_rate", dreams.student_rate, {.low = 0.0, .open_low = true},
               "Learning rate of the student (SGD).");
  table.number("student_momentum", dreams.student_momentum, {.low = 0.0, .high = 1.0}, "Momentum of the student.");
  table.number("student_decay", dreams.student_decay, {.low = 0.0}, "Weight decay of the student.");
  table.number("statistics_weight", dreams.statistics, {.low = 0.0}, "Weight of matching batch-norm statistics.");
  table.number("label_weight", dreams.labels, {.low = 0.0}, "Weight of the generator's cross-entropy.");
  table.number("adversary_weight", dreams.adversary, {.low = 0.0},
               "Weight of the adversarial term against the student.");
}

void lander::keys(key_table& table) {
  table.integer("embedding_width", options_.embedding, {.low = 1, .high = 65'536}, "Width of a label's embedding.");
  table.path("label_embeddings", options_.label_embeddings,
             "safetensors file with a tensor 'embeddings' [classes, embedding_width] of label texts; empty: random "
             "vectors.");
  table.number("anchoring", options_.anchoring, {.low = 0.0},
               "l: weight of the anchor loss, which moves features towards the embeddings.");
  table.flag("anchoring_first_task", options_.anchoring_first,
             "Use the anchor loss in the first task, too; false is the choice of the LANDER copy in STSA's official "
             "code.");
  table.number("radius", options_.radius, {.low = 0.0},
               "r: the anchor loss is 0 if the mean distance of a batch is smaller.");
  table.number("temperature", options_.temperature, {.low = 0.0, .open_low = true},
               "tau: temperature of the distillation.");
  table.number("rate_floor", options_.rate_floor, {.low = 0.0},
               "Final learning rate of the cosine schedule (training.schedule).");
  table.choice(
      "replay_pass", options_.replay_by, {{"joint", replay_pass::joint}, {"separate", replay_pass::separate}},
      "Own rows and generated images pass through the net together, or separately with their own batch statistics.");
  table.flag("replay_jitter", options_.replay_jitter, "Apply the jitter of training.augment to generated images, too.");
  table.flag("replay_short_last", options_.replay_short_last,
             "The last batch of each pass over the pool may be short.");
  table.choice(
      "new_class_head", options_.draws_rows, {{"kept", false}, {"drawn", true}},
      "Initial head weights of a task's classes: those from the start of the run, or drawn when the task begins.");
  table.choice("task_model", options_.ends_with,
               {{"last-round", task_model::last_round}, {"best-round", task_model::best_round}},
               "Final model of a task: the last average, or the model before the round with the lowest client loss "
               "(mean over the steps of the first epoch).");
  table.integer("pool_max", options_.pool_max, {.low = 0},
                "Maximum number of pool images, in order of file names; 0: all.");
  dream_keys(table, options_.dreams);
}

const strategy_registration line{
    {.name = "lander",
     .summary = "features anchored at label texts, data-free generated replay (LANDER, Tran et al. 2024, CVPR)",
     .make = []() -> std::unique_ptr<strategy> { return std::make_unique<lander>(); }}};

} // namespace
} // namespace mneme::lander_method
