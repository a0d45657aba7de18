// FedCIL: federated class-incremental learning with generative replay (D. Qi, H. Zhao and S. Li, "Better Generative
// Replay for Continual Federated Learning", ICLR 2023). Every client trains an AC-GAN whose critic is also the
// classifier, and replays rows from a generator of the previous task. The server averages both nets and continues their
// training on class-balanced rows of all clients' generators (model consolidation). Extra loss terms make the clients
// agree on rows of the server's generator (consistency enforcement).
//
// The official code is github.com/daiqing98/FedCIL, commit c439de0 (preset "official"; fed_cil_options.cpp lists its
// source lines). It multiplies the consistency terms by 0. A client replays rows of its own previous generator. Labels
// of generated rows are drawn from the classes so far and overwrite the first numbers of a latent code. Cross-entropy
// covers all classes of the run. Consolidation draws rows from a pool of all generators. Initial weights are drawn from
// N(0, 0.02^2), and batches come from shuffles.
//
// Ours: training steps match those of the official code (docs/fidelity.md). By default, consistency terms are used, and
// the GAN models features of a frozen backbone, as in FedHAF's comparison; preset "as-published" applies the official
// rules to features. The moments of Adam are kept in a client's memory. The server's critic is evaluated, not each
// client's. Generated rows are always normalized by the statistics of their batch. A client with fewer rows than a
// batch draws rows with replacement; the official code fails. With pooled consolidation, or if clients replay their own
// generators, uploads include the client's classes and its previous generator. We omit the official client split,
// EMNIST's longer codes (latent = 126) and the deeper CIFAR-10 nets.
#include "runtime/base/archive.hpp"
#include "strategies/fed_cil/feature_gan.hpp"
#include "strategies/fed_cil/fed_cil_options.hpp"
#include "strategies/shared/averaging.hpp"
#include "strategies/shared/split_learning.hpp"
#include "strategies/shared/training_keys.hpp"
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <algorithm>
#include <fmt/format.h>
namespace mneme::fed_cil_method {
namespace {

enum draws : std::uint32_t { net_draw = first_method_purpose + 81, game_draw };

/// Settings that both halves share.
struct run_settings {
  split_model net{};
  std::shared_ptr<const feature_gan> gan{};
  options settings{};
  at::Tensor generator{}; // [G] initial weights

  [[nodiscard]] gan_training game(const round_info& info, std::int64_t steps, double consistency) const {
    gan_training training{
        .steps = steps, .batch = settings.batch, .seen_classes = info.seen_classes, .consistency = consistency};
    if (settings.all_classes)
      training.seen_classes = {0, gan->shape().classes};
    training.any_fakes = settings.any_fakes;
    training.keeps_moments = keeps();
    training.shuffles = settings.shuffles;
    training.rates.rate = settings.learning_rate;
    training.rates.beta2 = settings.beta2;
    training.rates.decay = settings.decay;
    return training;
  }
  [[nodiscard]] bool keeps() const { return settings.moments != moments_rule::fresh; }
  /// Adds the moments of both nets to `to`: those in `kept`, or zeros if `kept` has none.
  void put_moments(const tensor_map& kept, tensor_map& to) const {
    for (const char* name : {gan_tensors::generator, gan_tensors::critic})
      if (keeps() && !kept.find(moment_names(name).front()))
        adam::put_initial_moments(name, to.at(name), to);
    keep_moments(kept, to);
  }
  /// Copies the moments that `from` contains.
  void keep_moments(const tensor_map& from, tensor_map& to) const {
    for (const char* name : {gan_tensors::generator, gan_tensors::critic})
      for (const auto& moment : moment_names(name))
        if (const auto* const value = keeps() ? from.find(moment) : nullptr)
          to.put(moment, *value);
  }
};

/// Returns a mask [C] that is 1 for the classes in `among`.
at::Tensor mask_of(std::int64_t classes, class_range among) {
  auto mask = at::zeros({classes}, at::kFloat);
  mask.narrow(0, among.low, among.size()).fill_(1.0);
  return mask;
}

// -- server half ------------------------------------------------------------------------------------------------------

class fed_cil_server final : public server_half {
public:
  explicit fed_cil_server(std::shared_ptr<const run_settings> run)
      : run_(std::move(run)), critic_(run_->net.head_setup.initial->at(flat_weights)), generator_(run_->generator) {}

  task<task_plan> open_task(server_context&, const round_info& info) override {
    if (info.task.value > 0 && !run_->settings.own_replay)
      old_generator_ = generator_;
    co_return task_plan{};
  }
  broadcast open_round(const round_info&) override {
    auto extra = std::make_shared<tensor_map>();
    extra->put(gan_tensors::generator, generator_);
    if (old_generator_.defined())
      extra->put(gan_tensors::old_generator, old_generator_);
    return {.info = {}, .weights = weights_only(critic_), .extra = extra, .initial_payload = nullptr};
  }
  void fold(const delivery& in) override {
    if (in.rows == 0) // a client without rows has not trained
      return;
    critics_.add(in.upload->at(flat_weights), static_cast<double>(in.rows));
    generators_.add(in.upload->at(gan_tensors::generator), static_cast<double>(in.rows));
    received_.push_back(in.upload);
  }
  task<void> close_round(server_context& ctx, const round_info& info) override;
  predictor predict() const override { return predictor_of(run_->net, critic_); }
  void persist(archive& state) override {
    state.frozen(critic_).frozen(generator_).frozen(old_generator_)(critics_)(generators_)(received_)(moments_);
  }

private:
  [[nodiscard]] program_job consolidation(const round_info& info, const std::vector<tensors_ref>& uploads) const;
  void put_rows(const round_info& info, const std::vector<tensors_ref>& uploads, tensor_map& in) const;

  std::shared_ptr<const run_settings> run_;
  at::Tensor critic_, generator_, old_generator_; // [P], [G], [G]; the last one is undefined in the first task
  weighted_average critics_, generators_;
  std::vector<tensors_ref> received_; // uploads of the round
  tensors_ref moments_{};             // moments of the server's optimizer; null before its first step
};

/// Averages both nets. Then consolidates them: they are trained for more steps on rows of all clients' generators.
task<void> fed_cil_server::close_round(server_context& ctx, const round_info& info) {
  if (received_.empty())
    co_return;
  critic_ = critics_.take();
  generator_ = generators_.take();
  const auto uploads = std::exchange(received_, {});
  if (run_->settings.consolidation_steps == 0)
    co_return;

  auto consolidating = ctx.run(consolidation(info, uploads));
  const auto consolidated = co_await consolidating;
  generator_ = consolidated.out->at(gan_tensors::generator);
  critic_ = consolidated.out->at(gan_tensors::critic);
  auto moments = std::make_shared<tensor_map>();
  run_->keep_moments(*consolidated.out, *moments);
  moments_ = moments;
}

program_job fed_cil_server::consolidation(const round_info& info, const std::vector<tensors_ref>& uploads) const {
  auto in = std::make_shared<tensor_map>();
  in->put(gan_tensors::generator, generator_);
  in->put(gan_tensors::critic, critic_);
  run_->put_moments(moments_ ? *moments_ : tensor_map{}, *in);
  in->put(gan_tensors::classes_so_far, mask_of(run_->gan->shape().classes, info.seen_classes));
  put_rows(info, uploads, *in);
  auto game = run_->game(info, run_->settings.consolidation_steps, 0.0);
  program_job job{.body = gan_program(run_->gan, game), .in = in};
  job.stream = {.seed = run_->net.whole.seed,
                .purpose = game_draw,
                .client = server_client_id,
                .task = info.task,
                .visit = static_cast<std::uint32_t>(info.round.value)};
  return job;
}

/// Adds the sources of rows for the server's steps: the clients' generators, and generators of earlier tasks.
void fed_cil_server::put_rows(const round_info& info, const std::vector<tensors_ref>& uploads, tensor_map& in) const {
  const auto stack_of = [&](const char* name) {
    std::vector<at::Tensor> rows;
    for (const auto& upload : uploads)
      if (const auto* const value = upload->find(name))
        rows.push_back(*value);
    return rows;
  };
  in.put(gan_tensors::generators, at::stack(stack_of(gan_tensors::generator)));
  if (run_->settings.pooled)
    in.put(gan_tensors::own_classes, at::stack(stack_of(gan_tensors::own_classes)));
  else
    in.put(gan_tensors::fresh, at::arange(info.current_classes.low, info.current_classes.high, at::kLong));
  if (old_generator_.defined()) {
    in.put(gan_tensors::old_generator, old_generator_);
    in.put(gan_tensors::old_classes, mask_of(run_->gan->shape().classes, {0, info.current_classes.low}));
  } else if (const auto old = stack_of(gan_tensors::old_generator); !old.empty()) {
    in.put(gan_tensors::old_generators, at::stack(old));
    in.put(gan_tensors::past_classes, at::stack(stack_of(gan_tensors::old_classes)));
  }
}

// -- client half ------------------------------------------------------------------------------------------------------

/// A client's record of its generators, classes and batches.
struct own_history {
  std::int64_t task = -1;                    // task of the client's last round
  std::int64_t batches = 0;                  // batches read in this task
  bool begins = false;                       // true in the client's first round of the task
  at::Tensor classes{};                      // mask [C] of all classes so far
  at::Tensor generator{};                    // generator after the client's last round; undefined without own replay
  at::Tensor old_generator{}, old_classes{}; // generator and classes at the end of the previous task; undefined in the
                                             // client's first task

  static own_history saved_in(const tensor_map& memory, std::int64_t all_classes) {
    own_history known{.classes = at::zeros({all_classes}, at::kFloat)};
    const auto* const task = memory.find("own_task");
    if (!task)
      return known;
    known.task = task->item<std::int64_t>();
    known.batches = memory.at("own_batches").item<std::int64_t>();
    known.classes = memory.at(gan_tensors::classes_so_far);
    if (const auto* const own = memory.find("own_generator"))
      known.generator = *own;
    if (const auto* const old = memory.find(gan_tensors::old_generator)) {
      known.old_generator = *old;
      known.old_classes = memory.at(gan_tensors::old_classes);
    }
    return known;
  }
  /// In the client's first round of a task, its generator and classes become the old ones.
  void begin(std::int64_t present, const at::Tensor& labels) {
    begins = task != present;
    if (begins) {
      old_generator = generator;
      old_classes = classes;
      batches = 0;
    }
    task = present;
    classes = classes.clone().index_fill_(0, labels, 1.0);
  }
  void save(tensor_map& to) const {
    if (task < 0)
      return;
    to.put("own_task", at::full({}, task, at::kLong));
    to.put("own_batches", at::full({}, batches, at::kLong));
    to.put(gan_tensors::classes_so_far, classes);
    if (generator.defined())
      to.put("own_generator", generator);
    if (!old_generator.defined())
      return;
    to.put(gan_tensors::old_generator, old_generator);
    to.put(gan_tensors::old_classes, old_classes);
  }
};

class fed_cil final : public strategy {
public:
  void keys(key_table& table) override { options_.keys(table); }
  std::vector<preset> presets() const override { return fed_cil_presets(); }
  method_needs needs() const override {
    return {
        .head = head_kind::none, .round_barrier = true, .feature_folder = options_.feature_cache, .frozen_net = true};
  }
  diagnostics check(const method_setup& setup) const override;
  model_ref downstream_net(const method_setup& setup) const override { return gan_of(setup)->critic(); }
  void prepare(const method_setup& setup) override;
  task<client_result> client_round(client_context& ctx, const broadcast& in) const override;
  std::unique_ptr<server_half> make_server() const override { return std::make_unique<fed_cil_server>(run_); }
  const std::vector<parameter>& wire_layout(const model&) const override { return run_->net.head_setup.net->layout(); }

private:
  [[nodiscard]] program_job game_of(client_context& ctx, const broadcast& in, const embedding_rows& rows,
                                    const own_history& history) const;
  [[nodiscard]] tensors_ref upload_of(const tensor_map& played, const embedding_rows& rows,
                                      const own_history& history) const;
  std::shared_ptr<const feature_gan> gan_of(const method_setup& setup) const {
    auto shape = options_.net;
    shape.features = backbone_of(setup, options_.layer)->feature_width();
    shape.classes = setup.classes;
    if (options_.of_images) {
      shape.image = setup.shape;
      shape.scale = setup.scale;
      shape.shift = setup.shift;
    }
    return std::make_shared<const feature_gan>(shape);
  }

  options options_;
  std::shared_ptr<const run_settings> run_;
};

void fed_cil::prepare(const method_setup& setup) {
  auto run = std::make_shared<run_settings>();
  run->settings = options_;
  run->gan = gan_of(setup);
  const auto critic = run->gan->critic();
  const auto drawn = options_.normal_start ? normal_start : initial_weights;
  const auto initial =
      setup.initial_downstream ? setup.initial_downstream->at(flat_weights) : drawn(*critic, setup.seed);
  run->net = split(setup, backbone_of(setup, options_.layer), critic, initial);
  run->generator = drawn(*run->gan->generator(), setup.seed);
  run_ = std::move(run);
}

/// Validates net and data for GANs of images. Returns an empty list if they are valid.
diagnostics validate_images(const method_setup& setup) {
  diagnostics errors;
  const bool has_body = std::any_of(setup.net->layout().begin(), setup.net->layout().end(),
                                    [](const parameter& entry) { return !entry.head; });
  if (has_body)
    errors.push_back({"strategy.nets",
                      fmt::format("strategy.nets = \"images\": generator and critic process images, but the backbone "
                                  "'{}' returns features; expected model.name = \"identity\", or nets = \"features\"",
                                  setup.net->identity())});
  const auto [channels, height, width] = setup.shape;
  if (!setup.has_images())
    errors.push_back(
        {"data.name",
         "the generator makes images (strategy.nets), but the data are rows of tokens or numbers; expected images"});
  else if (height % 8 != 0 || width % 8 != 0)
    errors.push_back(
        {"data.resize", fmt::format("three layers of the critic halve the sides of images (strategy.nets), "
                                    "which are {} x {} here; expected sides that divide by 8, as with "
                                    "data.resize = 32",
                                    height, width)});
  return errors;
}

diagnostics fed_cil::check(const method_setup& setup) const {
  auto errors = validate_backbone_of_method(setup, options_.layer);
  append(errors, reject_batch_keys(setup, "clients train for strategy.local_steps steps"));
  if (options_.net.overwrites && options_.net.latent < setup.classes)
    errors.push_back({"strategy.latent", fmt::format("strategy.latent = {}: labels replace the first {} numbers of a "
                                                     "latent vector (codes = \"overwritten\"); expected {} or more",
                                                     options_.net.latent, setup.classes, setup.classes)});
  if (options_.of_images)
    for (auto& finding : validate_images(setup))
      errors.push_back(std::move(finding));
  return errors;
}

task<client_result> fed_cil::client_round(client_context& ctx, const broadcast& in) const {
  auto looking = features_of_rows(ctx, in, run_->net, {.ratio = 0.0});
  const auto features = co_await looking;
  const auto classes = run_->gan->shape().classes;
  auto history = own_history::saved_in(ctx.memory(), classes);
  auto memory = std::make_shared<tensor_map>();
  features.save(*memory);
  const auto rows = features.current().size();
  if (rows == 0) { // without rows, the received nets are sent back unchanged
    auto unchanged = std::make_shared<tensor_map>(*in.weights);
    unchanged->put(gan_tensors::generator, in.extra->at(gan_tensors::generator));
    history.save(*memory);
    run_->keep_moments(ctx.memory(), *memory);
    co_return client_result{.upload = unchanged, .memory = memory, .rows = 0};
  }

  history.begin(static_cast<std::int64_t>(in.info.task.value), features.current().labels.to(at::kLong).cpu());
  auto playing = ctx.run(game_of(ctx, in, features.current(), history));
  const auto played = co_await playing;
  if (options_.own_replay)
    history.generator = played.out->at(gan_tensors::generator);
  history.batches += options_.steps;
  history.save(*memory);
  run_->keep_moments(*played.out, *memory);
  co_return client_result{
      .upload = upload_of(*played.out, features.current(), history), .memory = memory, .rows = rows};
}

program_job fed_cil::game_of(client_context& ctx, const broadcast& in, const embedding_rows& rows,
                             const own_history& history) const {
  const auto classes = run_->gan->shape().classes;
  // From the second round of a task on, the server's generator has been trained on the classes of the task.
  const bool agrees = options_.consistency > 0.0 && in.info.round_of_task > 0;
  auto tensors = std::make_shared<tensor_map>();
  tensors->put(gan_tensors::generator, in.extra->at(gan_tensors::generator));
  tensors->put(gan_tensors::critic, in.weights->at(flat_weights));
  const bool unmoved = history.begins && options_.moments == moments_rule::each_task;
  run_->put_moments(unmoved ? tensor_map{} : ctx.memory(), *tensors);
  tensors->put(gan_tensors::features, rows.features);
  tensors->put(gan_tensors::labels, rows.labels.to(at::kLong));
  tensors->put(gan_tensors::batches, at::full({}, history.batches, at::kLong));
  tensors->put(gan_tensors::classes_so_far, history.classes);
  if (options_.own_replay && history.old_generator.defined()) {
    tensors->put(gan_tensors::old_generator, history.old_generator);
    tensors->put(gan_tensors::old_classes, history.old_classes);
  } else if (const auto* const old = in.extra->find(gan_tensors::old_generator);
             old && in.info.current_classes.low > 0) {
    tensors->put(gan_tensors::old_generator, *old);
    tensors->put(gan_tensors::old_classes, mask_of(classes, {0, in.info.current_classes.low}));
  }
  if (agrees) {
    tensors->put(gan_tensors::server_generator, in.extra->at(gan_tensors::generator));
    tensors->put(gan_tensors::available, mask_of(classes, in.info.seen_classes));
  }
  program_job job{.body =
                      gan_program(run_->gan, run_->game(in.info, options_.steps, agrees ? options_.consistency : 0.0)),
                  .in = tensors};
  job.stream = ctx.stream(game_draw);
  job.rows = options_.steps * options_.batch;
  return job;
}

/// Returns an upload of both nets and of the extra tensors for the server's consolidation.
tensors_ref fed_cil::upload_of(const tensor_map& played, const embedding_rows& rows, const own_history& history) const {
  auto upload = std::make_shared<tensor_map>();
  upload->put(flat_weights, played.at(gan_tensors::critic));
  upload->put(gan_tensors::generator, played.at(gan_tensors::generator));
  if (options_.pooled) {
    auto own = at::zeros({run_->gan->shape().classes}, at::kFloat);
    upload->put(gan_tensors::own_classes, own.index_fill_(0, rows.labels.to(at::kLong).cpu(), 1.0));
  }
  if (options_.own_replay && history.old_generator.defined()) {
    upload->put(gan_tensors::old_generator, history.old_generator);
    upload->put(gan_tensors::old_classes, history.old_classes);
  }
  return upload;
}

const strategy_registration line{
    {.name = "fed-cil",
     .summary = "replay by AC-GANs that the server consolidates, on features (FedCIL, Qi et al. 2023, ICLR)",
     .make = []() -> std::unique_ptr<strategy> { return std::make_unique<fed_cil>(); }}};

} // namespace
} // namespace mneme::fed_cil_method
