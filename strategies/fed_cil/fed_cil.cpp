// FedCIL: federated class-incremental learning with generative replay (Qi, Zhao and Li 2023, "Better Generative Replay
// for Continual Federated Learning", ICLR). Every client trains an AC-GAN whose critic is also the classifier, and
// replays what the last task's global generator makes. The server averages generators and critics and goes on training
// them on class-balanced rows of all clients' generators ("model consolidation"); clients are held to agree on what the
// server's generator makes ("consistency enforcement"). The public code computes the three terms of the latter and
// multiplies each by 0: preset "as-published".
//
// Here it is the GAN of features behind a frozen backbone, so that it can be compared with FedHAF; the paper's makes
// images. The server needs all generators of a round at hand.
#include "runtime/base/archive.hpp"
#include "strategies/fed_cil/feature_gan.hpp"
#include "strategies/shared/split_learning.hpp"
#include "strategies/shared/averaging.hpp"
#include <ATen/ops/arange.h>
#include <ATen/ops/stack.h>
#include <algorithm>
#include <fmt/format.h>
#include <limits>
namespace mneme::fed_cil_method {
namespace {

enum draws : std::uint32_t { net_draw = first_method_purpose + 81, game_draw };

struct options {
  gan_shape net{};
  std::int64_t steps = 400, batch = 32, consolidation_steps = 50;
  double learning_rate = 1e-4, consistency = 1.0;
  std::string layer{};
  std::filesystem::path feature_cache{};
};

/// What both halves share.
struct run_settings {
  split_net net{};
  std::shared_ptr<const feature_gan> gan{};
  options with{};
  at::Tensor generator{}; // as drawn [G]

  [[nodiscard]] gan_training game(const round_place& place, std::int64_t steps, double consistency) const {
    gan_training training{.steps = steps, .batch = with.batch, .opened = place.opened, .consistency = consistency};
    training.old_classes = place.current.low;
    training.rates.rate = with.learning_rate;
    return training;
  }
};

constexpr const char *generator_name = "generator", *old_generator_name = "old_generator";

// -- server half ------------------------------------------------------------------------------------------------------

class fed_cil_server final : public server_half {
public:
  explicit fed_cil_server(std::shared_ptr<const run_settings> run)
      : run_(std::move(run)), critic_(run_->net.learnt.initial->at(flat_weights)), generator_(run_->generator) {}

  task<task_plan> open_task(server_context&, const round_place& place) override {
    if (place.task.value > 0)
      old_generator_ = generator_;
    co_return task_plan{};
  }
  broadcast open_round(const round_place&) override {
    auto extra = std::make_shared<tensor_map>();
    extra->put(generator_name, generator_);
    if (old_generator_.defined())
      extra->put(old_generator_name, old_generator_);
    return {.place = {}, .weights = weights_only(critic_), .extra = extra, .first_contact = nullptr};
  }
  void fold(const delivery& in) override {
    if (in.rows == 0) // nothing is learnt without rows
      return;
    critics_.add(in.upload->at(flat_weights), static_cast<double>(in.rows));
    generators_.add(in.upload->at(generator_name), static_cast<double>(in.rows));
    received_.push_back(in.upload);
  }
  task<void> close_round(server_context& ctx, const round_place& place) override;
  predictor predict() const override { return predictor_of(run_->net, critic_); }
  void persist(archive& state) override {
    state.frozen(critic_).frozen(generator_).frozen(old_generator_)(critics_)(generators_)(received_);
  }

private:
  std::shared_ptr<const run_settings> run_;
  at::Tensor critic_, generator_, old_generator_; // [P], [G]; undefined in task 1
  weighted_average critics_, generators_;
  std::vector<tensors_ref> received_; // uploads of the round
};

/// FedAvg of both nets, then consolidation: steps of the same game on rows of all clients' generators.
task<void> fed_cil_server::close_round(server_context& ctx, const round_place& place) {
  if (received_.empty())
    co_return;
  critic_ = critics_.take();
  generator_ = generators_.take();
  std::vector<at::Tensor> generators;
  for (const auto& upload : std::exchange(received_, {}))
    generators.push_back(upload->at(generator_name));
  if (run_->with.consolidation_steps == 0)
    co_return;

  auto in = std::make_shared<tensor_map>();
  in->put(generator_name, generator_);
  in->put("critic", critic_);
  in->put("generators", at::stack(generators));
  in->put("fresh", at::arange(place.current.low, place.current.high, at::kLong));
  if (old_generator_.defined())
    in->put(old_generator_name, old_generator_);
  constexpr client_id server_itself{std::numeric_limits<std::uint32_t>::max()};
  auto game = run_->game(place, run_->with.consolidation_steps, 0.0);
  program_job job{.body = gan_program(run_->gan, game), .in = in};
  job.stream = {.seed = run_->net.whole.seed,
                .purpose = game_draw,
                .client = server_itself,
                .task = place.task,
                .visit = static_cast<std::uint32_t>(place.round.value)};
  auto consolidating = ctx.run(std::move(job));
  const auto consolidated = co_await consolidating;
  generator_ = consolidated.out->at(generator_name);
  critic_ = consolidated.out->at("critic");
}

// -- client half ------------------------------------------------------------------------------------------------------

class fed_cil final : public strategy {
public:
  void keys(key_table& table) override;
  std::vector<preset> presets() const override {
    return {{.name = "as-published",
             .meaning = "what the public code computes: no consistency terms",
             .toml = "[strategy]\nconsistency = 0.0\n"}};
  }
  method_needs needs() const override {
    return {.head = head_kind::none, .round_barrier = true, .feature_folder = with_.feature_cache};
  }
  diagnostics check(const method_setup& setup) const override { return wrong_with_backbone(setup, with_.layer); }
  model_ref net_behind(const method_setup& setup) const override { return gan_of(setup)->critic(); }
  void prepare(const method_setup& setup) override;
  task<client_result> client_round(client_context& ctx, const broadcast& in) const override;
  std::unique_ptr<server_half> make_server() const override { return std::make_unique<fed_cil_server>(run_); }
  const std::vector<parameter>& wire_layout(const model&) const override { return run_->net.learnt.net->layout(); }

private:
  std::shared_ptr<const feature_gan> gan_of(const method_setup& setup) const {
    auto shape = with_.net;
    shape.features = backbone_of(setup, with_.layer)->feature_width();
    shape.classes = setup.classes;
    return std::make_shared<const feature_gan>(shape);
  }

  options with_;
  std::shared_ptr<const run_settings> run_;
};

void fed_cil::prepare(const method_setup& setup) {
  auto run = std::make_shared<run_settings>();
  run->with = with_;
  run->gan = gan_of(setup);
  const auto critic = run->gan->critic();
  const auto initial =
      setup.initial_behind ? setup.initial_behind->at(flat_weights) : initial_weights(*critic, setup.seed);
  run->net = split(setup, backbone_of(setup, with_.layer), critic, initial);
  run->generator = initial_weights(*run->gan->generator(), setup.seed);
  run_ = std::move(run);
}

task<client_result> fed_cil::client_round(client_context& ctx, const broadcast& in) const {
  auto looking = features_of_rows(ctx, in, run_->net, {.ratio = 0.0});
  const auto features = co_await looking;
  auto memory = std::make_shared<tensor_map>();
  features.save(*memory);
  const auto rows = features.current().size();
  if (rows == 0) { // no rows to learn from: what was received goes back
    auto unchanged = std::make_shared<tensor_map>(*in.weights);
    unchanged->put(generator_name, in.extra->at(generator_name));
    co_return client_result{.upload = unchanged, .memory = memory, .rows = 0};
  }

  // From the second round of a task on there is a generator of the server's that knows its classes.
  const bool agrees = with_.consistency > 0.0 && in.place.round_of_task > 0;
  auto tensors = std::make_shared<tensor_map>();
  tensors->put(generator_name, in.extra->at(generator_name));
  tensors->put("critic", in.weights->at(flat_weights));
  tensors->put("features", features.current().features);
  tensors->put("labels", features.current().labels.to(at::kLong));
  if (const auto* const old = in.extra->find(old_generator_name); old && in.place.current.low > 0)
    tensors->put(old_generator_name, *old);
  if (agrees)
    tensors->put("server_generator", in.extra->at(generator_name));
  const auto game = run_->game(in.place, with_.steps, agrees ? with_.consistency : 0.0);
  program_job job{.body = gan_program(run_->gan, game), .in = tensors};
  job.stream = ctx.stream(game_draw);
  job.rows = with_.steps * with_.batch;
  auto playing = ctx.run(std::move(job));
  const auto played = co_await playing;

  auto upload = std::make_shared<tensor_map>();
  upload->put(flat_weights, played.out->at("critic"));
  upload->put(generator_name, played.out->at(generator_name));
  co_return client_result{.upload = upload, .memory = memory, .rows = rows};
}

void fed_cil::keys(key_table& table) {
  table.integer("latent", with_.net.latent, {.low = 1, .high = 65'536}, "Numbers of noise that the generator reads.");
  table.integer("generator_width", with_.net.generator_width, {.low = 1, .high = 65'536},
                "Width of the generator's hidden layer.");
  table.integer("critic_width", with_.net.critic_width, {.low = 1, .high = 65'536},
                "Width of the critic's hidden layer.");
  table.integer("local_steps", with_.steps, {.low = 1, .high = 1'000'000},
                "Steps of a client in a round; training.epochs, batch and rates are not read.");
  table.integer("gan_batch", with_.batch, {.low = 1, .high = 100'000}, "Rows of a step.");
  table.number("gan_rate", with_.learning_rate, {.low = 0.0, .open_low = true},
               "Learning rate of Adam for both nets, with betas 0.5 and 0.99.");
  table.integer("consolidation_steps", with_.consolidation_steps, {.low = 0, .high = 1'000'000},
                "Steps of the server behind each average, on rows of the clients' generators.");
  table.number("consistency", with_.consistency, {.low = 0.0},
               "Weight of the terms that hold clients to the server's generator; 0 as the public code has it.");
  backbone_keys(table, with_.layer, with_.feature_cache);
}

const strategy_registration line{
    {.name = "fed-cil",
     .summary = "AC-GANs that replay and are consolidated by the server, on features (FedCIL, Qi et al. 2023, ICLR)",
     .make = []() -> std::unique_ptr<strategy> { return std::make_unique<fed_cil>(); }}};

} // namespace
} // namespace mneme::fed_cil_method
