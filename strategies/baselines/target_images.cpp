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

target_round_result target_round(const model& net, const model& generator, const target_settings& with,
                                 const at::Tensor& teacher, const at::Tensor& student, target_maker& now,
                                 const target_draws& drawn) {
  const auto start = now.generator.weights()[0];
  adam copy(start), codes(drawn.codes);
  auto outer = at::zeros_like(start);
  const auto scale = channel_values(with.scale, start) * 255.0, shift = channel_values(with.shift, start);
  const training_mode training;
  target_round_result result{.total = std::numeric_limits<double>::infinity()};
  at::Tensor last;
  for (std::int64_t step = 0; step < with.steps; ++step) {
    const auto g = leaf_of(copy.weights()), z = leaf_of(codes.weights());
    const auto read = z.unflatten(1, {1, 1, -1}).unsqueeze(0); // [1, B, 1, 1, Z]
    const auto generated = generator.differentiable(g.unsqueeze(0), read, {}, {.training = &training}).features;
    const auto pixels = pictures_of(generated, with.shape)[0]; // [B, C, H, W] in [0, 1]
    const auto view = drawn.views.defined() ? viewed(pixels, drawn.views[step]) : pixels;
    const auto shown = (view * scale + shift).unsqueeze(0).contiguous();
    const auto answered = net.differentiable(teacher.unsqueeze(0), shown, {0, with.opened}, {.statistics = true});
    const auto logits = answered.logits[0]; // [B, opened]
    const auto matched = match_statistics(answered.statistics, now.past, pixels.options());
    const auto of_labels = -at::log_softmax(logits, 1).gather(1, drawn.labels.unsqueeze(1)).mean();
    auto fooling = at::zeros({}, pixels.options());
    if (student.defined())
      fooling = disagreement(logits, net.differentiable(student.unsqueeze(0), shown, {0, with.opened}, {}).logits[0]);
    const auto total = matched.distance * with.statistics + of_labels * with.labels + fooling * with.adversary;
    const auto slopes = gradients_of(total, {g, z});
    const auto value = [](const at::Tensor& loss) { return loss.detach().item<double>(); };
    result.losses.push_back({value(total), value(matched.distance), value(of_labels), value(fooling)});
    if (result.losses.back().total < result.total) {
      result.total = result.losses.back().total;
      result.best = pixels.detach();
    }
    outer = outer + slopes[0];
    copy.step(slopes[0], {.rate = with.rate, .beta1 = 0.5});
    codes.step(slopes[1], {.rate = with.code_rate, .beta1 = 0.5});
    last = matched.now;
  }
  if (!result.best.defined())
    throw std::runtime_error("no step of the generator had a finite loss");
  if (with.outer == outer_step::reptile)
    outer = (start - copy.weights()) * reptile_factor;
  now.generator.step(outer.unsqueeze(0), {.rate = with.rate * static_cast<double>(with.steps), .beta1 = 0.5});
  now.past = next_average(now.past, last);
  return result;
}

namespace {

enum class target_draw : std::uint64_t { codes, labels, views, student, shown_to_student };

class target_images final : public looped_program {
public:
  target_images(model_ref net, const target_settings& with)
      : net_(std::move(net)), with_(with), generator_(image_generator(with.shape, with.code, with.filters)) {}

  [[nodiscard]] std::string name() const override { return "pool"; }
  [[nodiscard]] std::string identity() const override {
    return fmt::format("{}, {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} [{}] [{}]", net_->identity(),
                       generator_->identity(), with_.opened, with_.rounds, with_.steps, with_.batch, with_.rate,
                       with_.code_rate, static_cast<int>(with_.outer), with_.statistics, with_.labels, with_.adversary,
                       with_.views, with_.most, with_.warm_up, with_.student_steps, with_.student_batch,
                       with_.student_rate, with_.student_floor, with_.student_momentum, with_.student_decay,
                       with_.student_temperature, fmt::join(with_.scale, " "), fmt::join(with_.shift, " "));
  }
  [[nodiscard]] std::vector<declared_tensor> outcome(const program_job&) const override {
    const auto [channels, height, width] = with_.shape;
    return {{.name = "images", .shape = {with_.images(), channels, height, width}, .type = at::kByte},
            {.name = "labels", .shape = {with_.images()}, .type = at::kLong},
            {.name = "objective", .shape = {with_.rounds}, .type = at::kDouble}};
  }

protected:
  [[nodiscard]] program_step run_call(const program_call& call) const override;

private:
  /// State between slices of the program.
  struct work_state : target_maker {
    at::Tensor student{}, momentum{};           // [P]; momentum is undefined before the student's first step
    at::Tensor images{}, labels{}, objective{}; // of all rounds so far; undefined before the first
  };
  [[nodiscard]] work_state begun_or_saved(const program_call& call) const;
  [[nodiscard]] target_draws drawn(const program_call& call) const;
  void teach(const program_call& call, work_state& now) const;
  [[nodiscard]] program_step paused(const program_call& call, const work_state& now) const;
  /// Limits the images so far to those that the pool keeps.
  [[nodiscard]] at::Tensor kept(const at::Tensor& rows) const {
    if (with_.most == 0 || rows.size(0) <= with_.most)
      return rows;
    return rows.index_select(0, first_by_name(rows.size(0), with_.batch, with_.most).to(rows.device()));
  }
  [[nodiscard]] rng_key key_of(const program_call& call, target_draw kind) const {
    auto key = call.stream;
    key.index = static_cast<std::uint64_t>(call.slice) << 8U | static_cast<std::uint64_t>(kind);
    return key;
  }

  model_ref net_;
  target_settings with_;
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
  for (std::int64_t i = 0; i < with_.batch; ++i)
    labels.push_back(static_cast<std::int64_t>(of_labels.below(static_cast<std::uint64_t>(with_.opened))));
  target_draws draws{.labels = at::tensor(labels, at::kLong).to(call.device()),
                     .codes =
                         drawn_normal({with_.batch, with_.code}, key_of(call, target_draw::codes)).to(call.device())};
  if (with_.views)
    draws.views = drawn_views(with_.steps * with_.batch, of_views).view({with_.steps, with_.batch, 3});
  return draws;
}

/// The student's momentum persists over the rounds of a task.
void target_images::teach(const program_call& call, work_state& now) const {
  const student_rules rules{.classes = with_.opened,
                            .opened = with_.opened,
                            .temperature = with_.student_temperature,
                            .rate = with_.rate_of_student(call.slice - with_.warm_up),
                            .momentum = with_.student_momentum,
                            .decay = with_.student_decay};
  const pool_lesson lesson{.steps = with_.student_steps,
                           .batch = with_.student_batch,
                           .views = with_.views,
                           .scale = channel_values(with_.scale, now.student),
                           .shift = channel_values(with_.shift, now.student),
                           .order = key_of(call, target_draw::student),
                           .shown = key_of(call, target_draw::shown_to_student)};
  teach_on_pool(*net_, rules, call.in.at(flat_weights), kept(now.images), lesson, now.student, now.momentum);
}

program_step target_images::paused(const program_call& call, const work_state& now) const {
  program_step step{.finished = false,
                    .progress = static_cast<double>(call.slice + 1) / static_cast<double>(with_.rounds)};
  step.tensors = {
      {"student", now.student}, {"images", now.images}, {"labels", now.labels}, {"objective", now.objective}};
  now.generator.save("generator", 0, step.tensors);
  if (now.past.numel() > 0)
    step.tensors["past"] = now.past;
  if (now.momentum.defined())
    step.tensors["momentum"] = now.momentum;
  return step;
}

/// One round. Appends its best batch to the pool as bytes, truncated instead of rounded.
program_step target_images::run_call(const program_call& call) const {
  auto now = begun_or_saved(call);
  const auto draws = drawn(call);
  const bool adverse = with_.adverse() && call.slice + 1 >= with_.warm_up;
  const auto round = target_round(*net_, *generator_, with_, call.in.at(flat_weights),
                                  adverse ? now.student : at::Tensor{}, now, draws);
  const auto append = [](at::Tensor& rows, const at::Tensor& fresh) {
    rows = rows.defined() ? at::cat({rows, fresh}) : fresh;
  };
  append(now.images, (round.best * 255.0).to(at::kByte));
  append(now.labels, draws.labels);
  append(now.objective, at::full({1}, round.total, at::kDouble));
  if (call.slice + 1 < with_.rounds) {
    if (with_.adverse() && call.slice >= with_.warm_up)
      teach(call, now);
    return paused(call, now);
  }
  return {.tensors = {{"images", kept(now.images)}, {"labels", kept(now.labels)}, {"objective", now.objective}}};
}

} // namespace

program_ref target_program(model_ref net, const target_settings& with) {
  return std::make_shared<target_images>(std::move(net), with);
}

} // namespace mneme
