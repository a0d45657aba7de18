#include "strategies/baselines/target_images.hpp"
#include "runtime/method/gradients.hpp"
#include "strategies/shared/image_generator.hpp"
#include <ATen/ATen.h>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <limits>
#include <numbers>
#include <stdexcept>
namespace mneme {
namespace {

constexpr double reptile_factor = 67.0; // factor of the official code

at::Tensor channel_values(const std::vector<float>& values, const at::Tensor& like) {
  return at::tensor(values, at::kFloat).to(like.device()).view({-1, 1, 1});
}

} // namespace

double target_settings::rate_of_student(std::int64_t round) const {
  const double share = static_cast<double>(round) / static_cast<double>(rounds);
  return student_floor + (student_rate - student_floor) * 0.5 * (1.0 + std::cos(std::numbers::pi * share));
}

target_round_result target_round(const model& net, const model& generator, const target_settings& settings,
                                 const at::Tensor& teacher, const at::Tensor& student, target_generator_state& now,
                                 const target_draws& drawn) {
  const auto start = now.generator.weights()[0];
  adam copy(start), codes(drawn.codes);
  auto outer = at::zeros_like(start);
  const auto scale = channel_values(settings.scale, start) * 255.0, shift = channel_values(settings.shift, start);
  const training_mode training;
  target_round_result result{.total = std::numeric_limits<double>::infinity()};
  at::Tensor last;
  for (std::int64_t step = 0; step < settings.steps; ++step) {
    const auto g = leaf_of(copy.weights()), z = leaf_of(codes.weights());
    const auto read = z.unflatten(1, {1, 1, -1}).unsqueeze(0); // [1, B, 1, 1, Z]
    const auto generated = generator.differentiable(g.unsqueeze(0), read, {}, {.training = &training}).features;
    const auto pixels = images_of(generated, settings.shape)[0]; // [B, C, H, W] in [0, 1]
    const auto view = drawn.views.defined() ? crop_and_flip(pixels, drawn.views[step]) : pixels;
    const auto shown = (view * scale + shift).unsqueeze(0).contiguous();
    const auto answered =
        net.differentiable(teacher.unsqueeze(0), shown, {0, settings.seen_classes}, {.statistics = true});
    const auto logits = answered.logits[0]; // [B, opened]
    const auto matched = match_statistics(answered.statistics, now.past, pixels.options());
    const auto of_labels = -at::log_softmax(logits, 1).gather(1, drawn.labels.unsqueeze(1)).mean();
    auto fooling = at::zeros({}, pixels.options());
    if (student.defined())
      fooling = student_teacher_gap(
          logits, net.differentiable(student.unsqueeze(0), shown, {0, settings.seen_classes}, {}).logits[0]);
    const auto total =
        matched.distance * settings.statistics + of_labels * settings.labels + fooling * settings.adversary;
    const auto gradients = gradients_of(total, {g, z});
    const auto value = [](const at::Tensor& loss) { return loss.detach().item<double>(); };
    result.losses.push_back({value(total), value(matched.distance), value(of_labels), value(fooling)});
    if (result.losses.back().total < result.total) {
      result.total = result.losses.back().total;
      result.best = pixels.detach();
    }
    outer = outer + gradients[0];
    copy.step(gradients[0], {.rate = settings.rate, .beta1 = 0.5});
    codes.step(gradients[1], {.rate = settings.code_rate, .beta1 = 0.5});
    last = matched.now;
  }
  if (!result.best.defined())
    throw std::runtime_error("no step of the generator had a finite loss");
  if (settings.outer == outer_step::reptile)
    outer = (start - copy.weights()) * reptile_factor;
  now.generator.step(outer.unsqueeze(0), {.rate = settings.rate * static_cast<double>(settings.steps), .beta1 = 0.5});
  now.past = next_average(now.past, last);
  return result;
}

namespace {

enum class target_draw : std::uint64_t { codes, labels, views, student, shown_to_student };

class target_images final : public looped_program {
public:
  target_images(model_ref net, const target_settings& settings)
      : net_(std::move(net)), settings_(settings),
        generator_(image_generator(settings.shape, settings.code, settings.filters)) {}

  [[nodiscard]] std::string name() const override { return "pool"; }
  [[nodiscard]] std::string identity() const override {
    return fmt::format("{}, {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} [{}] [{}]", net_->identity(),
                       generator_->identity(), settings_.seen_classes, settings_.rounds, settings_.steps,
                       settings_.batch, settings_.rate, settings_.code_rate, static_cast<int>(settings_.outer),
                       settings_.statistics, settings_.labels, settings_.adversary, settings_.views, settings_.most,
                       settings_.warm_up, settings_.student_steps, settings_.student_batch, settings_.student_rate,
                       settings_.student_floor, settings_.student_momentum, settings_.student_decay,
                       settings_.student_temperature, fmt::join(settings_.scale, " "), fmt::join(settings_.shift, " "));
  }
  [[nodiscard]] std::vector<declared_tensor> outcome(const program_job&) const override {
    const auto [channels, height, width] = settings_.shape;
    return {{.name = "images", .shape = {settings_.images(), channels, height, width}, .type = at::kByte},
            {.name = "labels", .shape = {settings_.images()}, .type = at::kLong},
            {.name = "objective", .shape = {settings_.rounds}, .type = at::kDouble}};
  }

protected:
  [[nodiscard]] slice_result run_call(const program_call& call) const override;

private:
  /// State between slices of the program.
  struct work_state : target_generator_state {
    at::Tensor student{}, momentum{};           // [P]; momentum is undefined before the student's first step
    at::Tensor images{}, labels{}, objective{}; // results of all rounds so far; undefined before the first round
  };
  [[nodiscard]] work_state begun_or_saved(const program_call& call) const;
  [[nodiscard]] target_draws drawn(const program_call& call) const;
  void teach(const program_call& call, work_state& now) const;
  [[nodiscard]] slice_result paused(const program_call& call, const work_state& now) const;
  /// Selects from `rows`, the images or labels so far, those that the pool keeps.
  [[nodiscard]] at::Tensor kept(const at::Tensor& rows) const {
    if (settings_.most == 0 || rows.size(0) <= settings_.most)
      return rows;
    return rows.index_select(0, first_by_name(rows.size(0), settings_.batch, settings_.most).to(rows.device()));
  }
  [[nodiscard]] rng_key key_of(const program_call& call, target_draw kind) const {
    auto key = call.stream;
    key.index = static_cast<std::uint64_t>(call.slice) << 8U | static_cast<std::uint64_t>(kind);
    return key;
  }

  model_ref net_;
  target_settings settings_;
  model_ref generator_;
};

/// Restores the state of a slice. The first slice of a task starts with a new generator.
target_images::work_state target_images::begun_or_saved(const program_call& call) const {
  if (call.slice == 0) {
    work_state now;
    now.generator = adam(initial_weights(*generator_, call.stream.seed).to(call.device()).unsqueeze(0));
    now.student = call.in.at("student");
    return now;
  }
  const auto saved = [&](const char* name) {
    const auto* const value = call.state.find(name);
    return value ? value->clone() : at::Tensor{};
  };
  return {{adam::loaded("generator", std::span(&call, 1)), saved("past")},
          saved("student"),
          saved("momentum"),
          saved("images"),
          saved("labels"),
          saved("objective")};
}

target_draws target_images::drawn(const program_call& call) const {
  rng_stream of_labels(key_of(call, target_draw::labels)), of_views(key_of(call, target_draw::views));
  std::vector<std::int64_t> labels;
  for (std::int64_t i = 0; i < settings_.batch; ++i)
    labels.push_back(static_cast<std::int64_t>(of_labels.below(static_cast<std::uint64_t>(settings_.seen_classes))));
  target_draws draws{
      .labels = at::tensor(labels, at::kLong).to(call.device()),
      .codes = draw_normal({settings_.batch, settings_.code}, key_of(call, target_draw::codes)).to(call.device())};
  if (settings_.views)
    draws.views = draw_crops(settings_.steps * settings_.batch, of_views).view({settings_.steps, settings_.batch, 3});
  return draws;
}

/// Trains the student. Its momentum persists over the rounds of a task.
void target_images::teach(const program_call& call, work_state& now) const {
  const student_rules rules{.classes = settings_.seen_classes,
                            .seen_classes = settings_.seen_classes,
                            .temperature = settings_.student_temperature,
                            .rate = settings_.rate_of_student(call.slice - settings_.warm_up),
                            .momentum = settings_.student_momentum,
                            .decay = settings_.student_decay};
  const pool_training lesson{.steps = settings_.student_steps,
                             .batch = settings_.student_batch,
                             .views = settings_.views,
                             .scale = channel_values(settings_.scale, now.student),
                             .shift = channel_values(settings_.shift, now.student),
                             .order = key_of(call, target_draw::student),
                             .shown = key_of(call, target_draw::shown_to_student)};
  train_student_on_pool(*net_, rules, call.in.at(flat_weights), kept(now.images), lesson, now.student, now.momentum);
}

slice_result target_images::paused(const program_call& call, const work_state& now) const {
  slice_result step{.finished = false,
                    .progress = static_cast<double>(call.slice + 1) / static_cast<double>(settings_.rounds)};
  step.tensors = {
      {"student", now.student}, {"images", now.images}, {"labels", now.labels}, {"objective", now.objective}};
  now.generator.save("generator", 0, step.tensors);
  if (now.past.numel() > 0)
    step.tensors["past"] = now.past;
  if (now.momentum.defined())
    step.tensors["momentum"] = now.momentum;
  return step;
}

/// Runs one round. Appends its best batch to the pool, as bytes that are truncated instead of rounded.
slice_result target_images::run_call(const program_call& call) const {
  auto now = begun_or_saved(call);
  const auto draws = drawn(call);
  const bool uses_adversary = settings_.uses_adversary() && call.slice + 1 >= settings_.warm_up;
  const auto round = target_round(*net_, *generator_, settings_, call.in.at(flat_weights),
                                  uses_adversary ? now.student : at::Tensor{}, now, draws);
  const auto append = [](at::Tensor& rows, const at::Tensor& fresh) {
    rows = rows.defined() ? at::cat({rows, fresh}) : fresh;
  };
  append(now.images, (round.best * 255.0).to(at::kByte));
  append(now.labels, draws.labels);
  append(now.objective, at::full({1}, round.total, at::kDouble));
  if (call.slice + 1 < settings_.rounds) {
    if (settings_.uses_adversary() && call.slice >= settings_.warm_up)
      teach(call, now);
    return paused(call, now);
  }
  return {.tensors = {{"images", kept(now.images)}, {"labels", kept(now.labels)}, {"objective", now.objective}}};
}

} // namespace

program_ref target_program(model_ref net, const target_settings& settings) {
  return std::make_shared<target_images>(std::move(net), settings);
}

} // namespace mneme
