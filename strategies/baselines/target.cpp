// TARGET: J. Zhang, C. Chen, W. Zhuang and L. Lyu, "TARGET: Federated Class-Continual Learning via Exemplar-Free
// Distillation", ICCV 2023. After each task, the server synthesizes a fixed set of images of the old classes through
// the global model, without data. From task 2 on, clients minimize
//     CE over the new classes of real rows + k KD over the old classes of the images,
//     KD = -mean sum_c softmax(z_old / T)_c log softmax(z / T)_c, with z_old the logits of the previous task's model.
// Real rows and images are passed through the net separately. In a server round, a copy of the generator G and the
// latent codes are trained to minimize
//     a |running - batch statistics| + b CE(labels) - c KL(teacher || student) where both agree.
// The batch with the lowest loss is stored. Then G takes one step whose gradient is the sum of the copy's gradients, or
// 67 times the change of the copy.
//
// Official code (github.com/zj-jayzhang/Federated-Class-Continual-Learning, commit 78cb9c0): KD has no factor T^2.
// For CIFAR-100, it has 10 server rounds and a warm-up of 20 rounds, so no student is trained and the last term is
// never used (preset "official"). For Tiny-ImageNet, both are used (preset "official-tiny"). A client's epoch ends when
// the shorter of its two data loaders ends. A step has 8000 / ceil(rows of the data / (clients * tasks * batch))
// images.
//
// Ours: the steps of generator, student and clients match those of the official code (docs/fidelity.md). An epoch
// covers all real rows unless epoch_ends = "shorter"; then rows of the next shuffle fill the last batch of images. Head
// rows of future classes keep their initial values. Every broadcast contains the images, as bytes.
#include "runtime/base/ceil_div.hpp"
#include "strategies/baselines/generating_server.hpp"
#include "strategies/baselines/target_images.hpp"
#include "strategies/baselines/target_loss.hpp"
#include "strategies/shared/image_generator.hpp"
#include <algorithm>
namespace mneme::target_method {
namespace {

enum draws : std::uint32_t { pool_draw = first_method_purpose + 120, student_draw, epoch_draw };

struct options {
  double distillation = 25.0, temperature = 2.0; // k, T
  std::int64_t replay_rows = 1000;
  bool ends_shorter = false;
  target_settings making{};
};

// -- server half ------------------------------------------------------------------------------------------------------

class target_server final : public generating_server {
public:
  target_server(const method_setup& setup, const target_settings& making) : generating_server(setup), making_(making) {}

protected:
  program_job generation(const round_info& info) const override {
    auto making = making_;
    making.seen_classes = info.current_classes.low;
    const auto& net = setup().net;
    const auto seed = setup().seed;
    auto in = std::make_shared<tensor_map>();
    in->put(flat_weights, weights());
    in->put("student", making.uses_adversary()
                           ? student_start(*net, weights().cpu(), setup().classes,
                                           {.seed = seed, .purpose = student_draw, .task = info.task})
                           : weights());
    program_job job{.body = target_program(net, making), .in = in};
    job.stream = {.seed = seed, .purpose = pool_draw, .client = server_client_id, .task = info.task};
    return job;
  }
  /// Sends the pool of images, and the model through which they were synthesized.
  tensors_ref replay_of(const tensor_map& generated) override {
    auto pool = std::make_shared<tensor_map>();
    pool->put("teacher", weights());
    pool->put("images", generated.at("images"));
    pool->put("labels", generated.at("labels"));
    return pool;
  }

private:
  target_settings making_;
};

// -- client half ------------------------------------------------------------------------------------------------------

class target final : public averaging_method {
public:
  void keys(key_table& table) override;
  std::vector<preset> presets() const override;
  method_needs needs() const override {
    return {.upload_size_known = true,
            .defaults = "[training]\nepochs = 2\nbatch = 128\nlearning_rate = 0.04\nmomentum = 0.9\n"
                        "weight_decay = 5e-4\nschedule = \"cosine\"\n[strategy]\nweighting = \"uniform\"\n"};
  }
  diagnostics check(const method_setup& setup) const override {
    auto errors = averaging_method::check(setup);
    for (auto& finding : validate_generation(setup))
      errors.push_back(std::move(finding));
    return errors;
  }
  void prepare(const method_setup& setup) override {
    averaging_method::prepare(setup);
    options_.making.shape = setup.shape;
    options_.making.scale = setup.scale;
    options_.making.shift = setup.shift;
  }
  task<client_result> client_round(client_context& ctx, const broadcast& in) const override {
    auto training = ctx.train(job_of(ctx, in));
    const auto trained = co_await training;
    co_return client_result{.upload = trained.weights, .memory = nullptr, .rows = ctx.samples().size()};
  }
  std::unique_ptr<server_half> make_server() const override {
    return std::make_unique<target_server>(setup(), options_.making);
  }

private:
  [[nodiscard]] train_job job_of(client_context& ctx, const broadcast& in) const;

  options options_;
};

/// Returns `count` rows of a view, taken from successive shuffles. A shuffle contributes at most `each` rows.
sample_view shuffled(const sample_view& view, std::int64_t count, std::int64_t each, rng_key key) {
  auto order = *view.rows;
  rng_stream draw(key);
  std::vector<std::int64_t> rows;
  while (std::ssize(rows) < count) {
    draw.shuffle(std::span(order));
    const auto taken = std::min({each, std::ssize(order), count - std::ssize(rows)});
    rows.insert(rows.end(), order.begin(), order.begin() + taken);
  }
  return {.source = view.source, .rows = std::make_shared<const std::vector<std::int64_t>>(std::move(rows))};
}

/// Shortens epochs to the number of image batches, if the real rows have more batches. The rows of all epochs are drawn
/// in advance, and the job trains on them in this order in a single epoch.
void cut_epochs(train_job& job, const client_context& ctx) {
  auto& how = job.options;
  const auto images = job.replay.samples.size(), batch = std::min(how.replay_rows, images);
  const auto steps = ceil_div(images, batch), cut = steps * how.batch_rows;
  if (how.epochs == 0 || how.batch_rows == 0 || job.samples.size() <= cut)
    return;
  auto key = ctx.stream(epoch_draw);
  job.samples = shuffled(job.samples, how.epochs * cut, cut, key);
  key.index = 1;
  job.replay.samples = shuffled(job.replay.samples, how.epochs * steps * batch, images, key);
  how.replay_rows = batch;
  how.replay_short_last = false;
  how.in_order = true;
  how.epochs = 1;
}

train_job target::job_of(client_context& ctx, const broadcast& in) const {
  auto job = local_training(setup(), ctx, in, {.samples = ctx.samples(), .classes = in.info.seen_classes});
  const auto old = in.info.current_classes.low;
  if (!in.extra || old == 0)
    return job;
  const auto& pool = *in.extra;
  auto& how = job.options;
  job.objective = target_objective(old, options_.distillation, options_.temperature);
  job.add_teacher(weights_only(pool.at("teacher")), {.classes = {0, old}});
  job.replay.samples = ctx.rows_of(pool.at("images"), pool.at("labels"));
  how.replay_rows = options_.replay_rows;
  how.replay_by = replay_pass::separate;
  how.replay_short_last = true;
  if (how.augment == augmentation_kind::crop_flip_jitter) // images are not jittered
    how.replay_augment = augmentation_kind::crop_flip;
  if (options_.ends_shorter)
    cut_epochs(job, ctx);
  return job;
}

std::vector<preset> target::presets() const {
  const std::string own = "[training]\noptimizer = \"sgd\"\nepochs = 5\nbatch = 128\nlearning_rate = 0.01\n"
                          "momentum = 0.9\nweight_decay = 5e-4\nschedule = \"constant\"\naugment = "
                          "\"crop-flip-jitter\"\n[rounds]\nper_task = 100\n[strategy]\nweighting = \"uniform\"\n"
                          "epoch_ends = \"shorter\"\n";
  return {{.name = "paper",
           .meaning = "the settings in comparisons of federated class-incremental papers, for ResNet-18",
           .toml = "[training]\noptimizer = \"sgd\"\nepochs = 2\nbatch = 128\nlearning_rate = 0.04\nmomentum = 0.9\n"
                   "weight_decay = 5e-4\nschedule = \"cosine\"\naugment = \"crop-flip\"\n[rounds]\nper_task = 100\n"
                   "[strategy]\nweighting = \"uniform\"\n"},
          {.name = "official",
           .meaning = "the official code on CIFAR-100, with five tasks, five clients and epochs of the shorter loader",
           .toml = own + "replay_rows = 500\n"},
          {.name = "official-tiny",
           .meaning =
               "the official code on Tiny-ImageNet, with more rounds, an adversarial student and Reptile's outer step",
           .toml = own + "replay_rows = 250\ngenerator_rounds = 200\ngenerator_steps = 50\ngenerator_rate = 2e-4\n"
                         "outer_step = \"reptile\"\nstatistics_weight = 0.1\nlabel_weight = 0.1\n"
                         "student_temperature = 5.0\n"}};
}

/// Declares the keys of generator and student.
void making_keys(key_table& table, target_settings& making) {
  table.integer("generator_rounds", making.rounds, {.low = 1, .high = 100'000},
                "Generator rounds after each task; the best batch of each is kept.");
  table.integer("generator_steps", making.steps, {.low = 1, .high = 100'000},
                "Adam steps of the generator's copy and the latent vectors per round.");
  table.integer("generator_batch", making.batch, {.low = 1, .high = 100'000}, "Images per round.");
  table.number(
      "generator_rate", making.rate, {.low = 0.0, .open_low = true},
      "Learning rate of the generator's copy; that of the generator is strategy.generator_steps times as large.");
  table.number("code_rate", making.code_rate, {.low = 0.0}, "Learning rate of the latent vectors.");
  table.integer("code_width", making.code, {.low = 1, .high = 65'536}, "Width of a latent vector.");
  table.integer("generator_width", making.filters, {.low = 1, .high = 65'536},
                "Filters of the generator's last convolution; earlier ones have twice as many.");
  table.flag("generator_views", making.views,
             "Randomly crop and mirror images in each step before the model and the student read them.");
  table.choice("outer_step", making.outer, {{"first-order", outer_step::first_order}, {"reptile", outer_step::reptile}},
               "Outer step of the generator after a round: the sum of the copy's gradients, or its change of weights.");
  table.number("statistics_weight", making.statistics, {.low = 0.0}, "a: weight of matching batch-norm statistics.");
  table.number("label_weight", making.labels, {.low = 0.0}, "b: weight of the generator's cross-entropy.");
  table.number("adversary_weight", making.adversary, {.low = 0.0},
               "c: weight of the adversarial term against the student.");
  table.integer("warm_up", making.warm_up, {.low = 1, .high = 100'000},
                "First round with the adversarial term; the student is trained after each later round. If it exceeds "
                "generator_rounds, no student is used.");
  table.integer("student_steps", making.student_steps, {.low = 0, .high = 100'000}, "Steps of the student per round.");
  table.integer("student_batch", making.student_batch, {.low = 1, .high = 100'000}, "Images per student step.");
  table.number("student_rate", making.student_rate, {.low = 0.0, .open_low = true},
               "Initial learning rate of the student (SGD); it follows half a cosine over the rounds.");
  table.number("student_rate_floor", making.student_floor, {.low = 0.0}, "Final learning rate of the student.");
  table.number("student_momentum", making.student_momentum, {.low = 0.0, .high = 1.0}, "Momentum of the student.");
  table.number("student_decay", making.student_decay, {.low = 0.0}, "Weight decay of the student.");
  table.number("student_temperature", making.student_temperature, {.low = 0.0, .open_low = true},
               "Temperature T of the student's distillation; the loss is multiplied by T^2.");
}

void target::keys(key_table& table) {
  table.number("distillation_weight", options_.distillation, {.low = 0.0}, "k: weight of the distillation on images.");
  table.number("temperature", options_.temperature, {.low = 0.0, .open_low = true},
               "Temperature of the distillation on images.");
  table.integer("replay_rows", options_.replay_rows, {.low = 1, .high = 1'000'000}, "Generated images per step.");
  table.choice("epoch_ends", options_.ends_shorter, {{"own-rows", false}, {"shorter", true}},
               "From task 2 on, an epoch ends after all own rows, or when own rows or images run out.");
  table.integer("pool_max", options_.making.most, {.low = 0},
                "Maximum number of pool images, in order of file names; 0: all.");
  making_keys(table, options_.making);
}

const strategy_registration target_line{
    {.name = "target",
     .summary = "distillation of old classes on a fixed pool of generated images (TARGET, Zhang et al. 2023, ICCV)",
     .make = []() -> std::unique_ptr<strategy> { return std::make_unique<target>(); }}};

} // namespace
} // namespace mneme::target_method
