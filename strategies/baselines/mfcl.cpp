// MFCL: S. Babakniya, Z. Fabian, C. He, M. Soltanolkotabi and S. Avestimehr, "A Data-Free Approach to Mitigate
// Catastrophic Forgetting in Federated Class Incremental Learning for Vision Tasks", NeurIPS 2023. After each task, the
// server trains an image generator through the global model, without data. f are features and h is the head; f' and h'
// are those of the previous model, which also labels the generated images. From task 2 on, a client minimizes
//     CE over the new classes of real rows + w_ft CE(h(stop(f)), y) over all classes
//     + w_kd / O sum_c (h'(f)_c - h'(f')_c)^2 over the O old classes,
// where the last two are means over real and generated rows. With u the model's logits of generated images x, p their
// mean softmax and S a 5 x 5 smoothing, the generator minimizes in 100 Adam steps per task
//     CE(u / 1000, argmax u) + (1 + sum_c p_c log p_c / log C) + 50 KL(N(running) || N(batch)) + 1e-3 |x - S x|^2.
//
// The official code (github.com/SaraBabakN/MFCL-NeurIPS23, commit 8ab937b; preset "official") passes real and generated
// rows together through the net, twice per step, so running statistics are updated twice. The learning rate falls
// exponentially from 0.1 to 0.01 within a task. 5 of 50 clients participate per round. For Tiny-ImageNet, the generator
// has one more upsampling layer (preset "official-tiny"), and rotated images are added, which we omit.
//
// Ours: training steps match those of the official code (docs/fidelity.md). A client generates the images of all steps
// before its training. Head rows of future classes keep their initial values. Every broadcast contains the generator
// and the previous model. From task 2 on, a client round costs about 7 times as much as a round of FedAvg with preset
// "official", and 2.7 times as much with "paper" (docs/benchmarks.md).
#include "strategies/baselines/generating_server.hpp"
#include "strategies/baselines/local_steps.hpp"
#include "strategies/baselines/mfcl_generator.hpp"
#include "strategies/baselines/mfcl_loss.hpp"
#include "strategies/shared/image_generator.hpp"
#include "strategies/shared/linear_head.hpp"
#include "strategies/shared/training_keys.hpp"
#include <ATen/ops/zeros.h>
#include <algorithm>
#include <cmath>
#include <fmt/format.h>
namespace mneme::mfcl_method {
namespace {

enum draws : std::uint32_t { generator_draw = first_method_purpose + 130, replay_draw };

struct options {
  mfcl_weights weights{};
  std::int64_t replay_rows = 128;
  double rate_end = 0.01;
  bool moves_twice = true;
  mfcl_settings making{};
};

// -- server half ------------------------------------------------------------------------------------------------------

class mfcl_server final : public generating_server {
public:
  mfcl_server(const method_setup& setup, const mfcl_settings& making)
      : generating_server(setup), making_(making), generator_(initial_weights(*mfcl_generator(making), setup.seed)) {}
  void persist(archive& state) override {
    generating_server::persist(state);
    state.frozen(generator_);
  }

protected:
  program_job generation(const round_info& info) const override {
    auto making = making_;
    making.seen_classes = info.current_classes.low;
    auto in = std::make_shared<tensor_map>();
    in->put(flat_weights, weights());
    in->put("generator", generator_);
    program_job job{.body = mfcl_training(setup().net, making), .in = in};
    job.stream = {.seed = setup().seed, .purpose = generator_draw, .client = server_client_id, .task = info.task};
    return job;
  }
  /// Sends the generator, and the model through which it was trained.
  tensors_ref replay_of(const tensor_map& generated) override {
    generator_ = generated.at("generator");
    auto replay = std::make_shared<tensor_map>();
    replay->put("generator", generator_);
    replay->put("teacher", weights());
    return replay;
  }

private:
  mfcl_settings making_;
  at::Tensor generator_; // [G]
};

// -- client half ------------------------------------------------------------------------------------------------------

class mfcl final : public averaging_method {
public:
  void keys(key_table& table) override;
  std::vector<preset> presets() const override;
  method_needs needs() const override {
    return {.defaults = "[training]\nepochs = 2\nbatch = 128\nlearning_rate = 0.1\nmomentum = 0.0\n"
                        "weight_decay = 1e-5\n[strategy]\nweighting = \"uniform\"\n"};
  }
  diagnostics check(const method_setup& setup) const override;
  void prepare(const method_setup& setup) override {
    averaging_method::prepare(setup);
    options_.making.shape = setup.shape;
  }
  task<client_result> client_round(client_context& ctx, const broadcast& in) const override;
  std::unique_ptr<server_half> make_server() const override {
    return std::make_unique<mfcl_server>(setup(), options_.making);
  }

private:
  [[nodiscard]] train_job job_of(const client_context& ctx, const broadcast& in) const;
  void replay(train_job& job, const client_context& ctx, const tensor_map& sent, const at::Tensor& images,
              std::int64_t old) const;

  options options_;
};

/// The rate of round r of R is eta (eta_end / eta)^(r / R).
train_job mfcl::job_of(const client_context& ctx, const broadcast& in) const {
  auto job = local_training(setup(), ctx, in, {.samples = ctx.samples(), .classes = in.info.seen_classes});
  const double first = setup().training.learning_rate;
  if (options_.rate_end > 0.0 && first > 0.0)
    job.options.learning_rate *= std::pow(options_.rate_end / first, static_cast<double>(in.info.round_of_task) /
                                                                         static_cast<double>(in.info.rounds_of_task));
  return job;
}

void mfcl::replay(train_job& job, const client_context& ctx, const tensor_map& sent, const at::Tensor& images,
                  std::int64_t old) const {
  auto& how = job.options;
  job.replay.samples = ctx.rows_of(images, at::zeros({images.size(0)}, at::kLong)); // the teacher provides the labels
  how.replay_rows = options_.replay_rows;
  how.replay_augment = augmentation_kind::none;
  how.running_stats_updates = options_.moves_twice ? 2 : 1;
  job.add_teacher(weights_only(sent.at("teacher")), {.classes = {0, old}});
  job.objective = mfcl_objective(old, options_.weights);
  job.auxiliary = old_head(*setup().net, sent.at("teacher"), old);
}

/// Generates the images of all steps before the training starts.
task<client_result> mfcl::client_round(client_context& ctx, const broadcast& in) const {
  auto job = job_of(ctx, in);
  const auto old = in.info.current_classes.low, steps = local_steps(job.options, ctx.samples().size());
  if (in.extra && old > 0 && steps > 0) {
    auto read = std::make_shared<tensor_map>();
    read->put("generator", in.extra->at("generator"));
    program_job drawing{.body = mfcl_drawing(options_.making, steps * options_.replay_rows, options_.replay_rows),
                        .in = read};
    drawing.stream = ctx.stream(replay_draw);
    auto drawn_there = ctx.run(std::move(drawing));
    const auto drawn = co_await drawn_there;
    replay(job, ctx, *in.extra, drawn.out->at("images"), old);
  }
  auto training = ctx.train(std::move(job));
  const auto trained = co_await training;
  co_return client_result{.upload = trained.weights, .memory = nullptr, .rows = ctx.samples().size()};
}

diagnostics mfcl::check(const method_setup& setup) const {
  auto errors = averaging_method::check(setup);
  append(errors, reject_label_smoothing(setup, "its losses read labels of a teacher besides those of rows"));
  for (auto& finding : validate_generation(setup))
    errors.push_back(std::move(finding));
  for (auto& finding : without_linear_head(*setup.net, "clients are regularized towards old rows of the head"))
    errors.push_back(std::move(finding));
  return errors;
}

std::vector<preset> mfcl::presets() const {
  const auto of_epochs = [](int epochs, int batch) {
    return fmt::format("[training]\noptimizer = \"sgd\"\nepochs = {}\nbatch = {}\nlearning_rate = 0.1\nmomentum = 0.0\n"
                       "weight_decay = 1e-5\nschedule = \"constant\"\naugment = \"crop-flip\"\n"
                       "[rounds]\nper_task = 100\n[strategy]\nweighting = \"uniform\"\n",
                       epochs, batch);
  };
  const auto official = of_epochs(10, 32);
  return {{.name = "paper",
           .meaning = "epochs and batches as in comparisons of federated class-incremental papers, at MFCL's own rates",
           .toml = of_epochs(2, 128)},
          {.name = "official",
           .meaning = "a run of the official code on CIFAR-100, with 5 of 50 clients per round",
           .toml = official},
          {.name = "official-tiny",
           .meaning = "a run of the official code on Tiny-ImageNet, with one more upsampling stage in the generator",
           .toml = official + "upsamplings = 3\n"}};
}

/// Declares the keys of the generator.
void making_keys(key_table& table, mfcl_settings& making) {
  table.integer("generator_steps", making.steps, {.low = 1, .high = 1'000'000},
                "Adam steps of the generator after each task.");
  table.integer("generator_batch", making.batch, {.low = 2, .high = 100'000}, "Images per generator step.");
  table.number("generator_rate", making.rate, {.low = 0.0},
               "Learning rate of the generator; 0: it keeps its random initial weights.");
  table.integer("code_width", making.code, {.low = 1, .high = 65'536}, "Width of a latent vector.");
  table.integer("generator_width", making.filters, {.low = 1, .high = 65'536},
                "Filters of the last convolution before the image; earlier ones have twice as many.");
  table.integer("upsamplings", making.upsamplings, {.low = 1, .high = 6},
                "Number of doublings of the image sides in the generator; if they do not divide the sides, the "
                "generator has two linear layers.");
  table.number("label_weight", making.labels, {.low = 0.0},
               "Weight of the cross-entropy of the model on generated images.");
  table.number("label_temperature", making.temperature, {.low = 0.0, .open_low = true},
               "Temperature of the generator's cross-entropy.");
  table.number("information_weight", making.information, {.low = 0.0},
               "Weight of the class-balance term (information entropy) of generated images.");
  table.number("statistics_weight", making.statistics, {.low = 0.0}, "Weight of matching batch-norm statistics.");
  table.number("smoothness_weight", making.smoothness, {.low = 0.0},
               "Weight of the smoothness prior of generated images.");
}

void mfcl::keys(key_table& table) {
  table.number("head_weight", options_.weights.head, {.low = 0.0},
               "w_ft: weight of the cross-entropy over all classes, which trains only the head.");
  table.number("distillation_weight", options_.weights.features, {.low = 0.0},
               "w_kd: weight of the distillation of features, weighted by the old head.");
  table.integer("replay_rows", options_.replay_rows, {.low = 1, .high = 100'000}, "Generated images per step.");
  table.number("rate_end", options_.rate_end, {.low = 0.0},
               "Final learning rate of an exponential decay over the rounds of a task; 0: no decay.");
  table.flag("batch_norm_updates_twice", options_.moves_twice,
             "Update running statistics twice in a step of later tasks, as in the official code; false: once.");
  making_keys(table, options_.making);
}

const strategy_registration mfcl_line{{.name = "mfcl",
                                       .summary = "a generator of images of old classes, which clients replay in every "
                                                  "step (MFCL, Babakniya et al. 2023, NeurIPS)",
                                       .make = []() -> std::unique_ptr<strategy> { return std::make_unique<mfcl>(); }}};

} // namespace
} // namespace mneme::mfcl_method
