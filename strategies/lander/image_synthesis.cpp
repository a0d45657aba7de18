#include "strategies/lander/image_synthesis.hpp"
#include "strategies/shared/image_generator.hpp"
#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
namespace mneme {

at::Tensor synthesis_labels(std::int64_t batch, std::int64_t classes, const rng_key& key) {
  auto labels = at::arange(batch, at::kLong) % classes;
  rng_stream draw(key);
  for (auto i = batch / classes * classes; i < batch; ++i)
    labels.mutable_data_ptr<std::int64_t>()[i] =
        static_cast<std::int64_t>(draw.below(static_cast<std::uint64_t>(classes)));
  return labels;
}

namespace {

enum class dream_draw : std::uint64_t { noise, student, labels, views, shown_to_student };

class dreams final : public looped_program {
public:
  dreams(model_ref net, const synthesis_settings& settings)
      : net_(std::move(net)), settings_(settings),
        generator_(image_generator(settings.shape, settings.noise, settings.filters)) {}

  [[nodiscard]] std::string name() const override { return "dreams"; }
  [[nodiscard]] std::string identity() const override {
    return fmt::format("{}, {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} [{}] [{}]",
                       net_->identity(), generator_->identity(), settings_.classes, settings_.seen_classes,
                       settings_.embedding, settings_.noise, settings_.chunk, settings_.rounds, settings_.warm_up,
                       settings_.lead, settings_.views, settings_.steps, settings_.batch, settings_.student_steps,
                       settings_.student_batch, settings_.rate, settings_.input_rate, settings_.student_rate,
                       settings_.student_momentum, settings_.student_decay, settings_.statistics, settings_.labels,
                       settings_.adversary, settings_.bound, settings_.radius, settings_.student_temperature,
                       fmt::join(settings_.scale, " "), fmt::join(settings_.shift, " "));
  }
  [[nodiscard]] std::vector<declared_tensor> outcome(const program_job&) const override {
    const auto [channels, height, width] = settings_.shape;
    return {{.name = "images", .shape = {settings_.images(), channels, height, width}, .type = at::kByte},
            {.name = "labels", .shape = {settings_.images()}, .type = at::kLong},
            {.name = "objective", .shape = {settings_.rounds}, .type = at::kDouble},
            {.name = "statistics", .shape = {settings_.rounds}, .type = at::kDouble}};
  }

protected:
  [[nodiscard]] slice_result run_call(const program_call& call) const override;

private:
  /// State between slices.
  struct work_state : synthesis_state {
    at::Tensor student{};                 // [P]
    at::Tensor images{}, labels{};        // pool so far, or undefined
    at::Tensor objective{}, statistics{}; // [rounds]
  };
  [[nodiscard]] work_state begun(const program_call& call) const;
  [[nodiscard]] work_state resume(const program_call& call) const;
  [[nodiscard]] slice_result paused(const program_call& call, const work_state& now) const;
  [[nodiscard]] synthesis_draws drawn(const program_call& call) const;
  void dream(const program_call& call, work_state& now) const;
  void teach(const program_call& call, work_state& now) const;
  [[nodiscard]] rng_key key_of(const program_call& call, dream_draw kind) const {
    auto key = call.stream;
    key.index = static_cast<std::uint64_t>(call.slice) << 8U | static_cast<std::uint64_t>(kind);
    return key;
  }

  model_ref net_;
  synthesis_settings settings_;
  model_ref generator_;
};

/// Mean and deviation of the nets' input start at 0.5 and 0.2 for all data sets, as in the official code.
dreams::work_state dreams::begun(const program_call& call) const {
  const auto options = at::TensorOptions(at::kFloat).device(call.device());
  const auto embedding = call.in.at("anchors").size(1);
  work_state now;
  now.generator = initial_weights(*generator_, call.stream.seed).to(call.device());
  now.norm = at::stack({at::ones({embedding}, options), at::zeros({embedding}, options)});
  now.mean = at::full({settings_.shape[0]}, 0.5, options);
  now.deviation = at::full({settings_.shape[0]}, 0.2, options);
  now.student = call.in.at("student");
  now.objective = at::zeros({settings_.rounds}, at::kDouble);
  now.statistics = at::zeros({settings_.rounds}, at::kDouble);
  return now;
}

dreams::work_state dreams::resume(const program_call& call) const {
  const auto saved = [&](const char* name) {
    const auto* const value = call.state.find(name);
    return value ? value->clone() : at::Tensor{};
  };
  return {{saved("generator"), saved("norm"), saved("mean"), saved("deviation"), saved("past")},
          saved("student"),
          saved("images"),
          saved("labels"),
          saved("objective"),
          saved("statistics_of_rounds")};
}

slice_result dreams::paused(const program_call& call, const work_state& now) const {
  slice_result step{.finished = false,
                    .progress = static_cast<double>(call.slice + 1) / static_cast<double>(settings_.rounds)};
  step.tensors = {{"generator", now.generator},
                  {"norm", now.norm},
                  {"student", now.student},
                  {"mean", now.mean},
                  {"deviation", now.deviation},
                  {"objective", now.objective},
                  {"statistics_of_rounds", now.statistics}};
  if (now.past.numel() > 0)
    step.tensors["past"] = now.past;
  if (now.images.defined()) {
    step.tensors["images"] = now.images;
    step.tensors["labels"] = now.labels;
  }
  return step;
}

synthesis_draws dreams::drawn(const program_call& call) const {
  const auto embedding = call.in.at("anchors").size(1);
  synthesis_draws draws{
      .labels = synthesis_labels(settings_.batch, settings_.seen_classes, key_of(call, dream_draw::labels)),
      .layers = draw_normal({settings_.noise_layers(), settings_.noise, embedding}, key_of(call, dream_draw::noise))};
  draws.labels = draws.labels.to(call.device());
  draws.layers = draws.layers.to(call.device());
  if (settings_.views) {
    rng_stream draw(key_of(call, dream_draw::views));
    draws.views = draw_crops(settings_.steps * settings_.batch, draw).view({settings_.steps, settings_.batch, 3});
  }
  return draws;
}

/// Runs one round of the generator's training. From the last warm-up round on, appends the best batch of the round to
/// the pool, as bytes that are truncated instead of rounded.
void dreams::dream(const program_call& call, work_state& now) const {
  const bool uses_adversary = call.slice >= settings_.warm_up + settings_.lead;
  const auto draws = drawn(call);
  const auto dreamt = synthesis_round(*net_, *generator_, settings_, call.in.at(flat_weights),
                                      uses_adversary ? now.student : at::Tensor{}, call.in.at("anchors"), now, draws);
  now.objective[call.slice].fill_(dreamt.total);
  now.statistics[call.slice].fill_(dreamt.statistics);
  if (call.slice + 1 < settings_.warm_up)
    return;
  const auto bytes = (dreamt.best * 255.0).to(at::kByte);
  now.images = now.images.defined() ? at::cat({now.images, bytes}) : bytes;
  now.labels = now.labels.defined() ? at::cat({now.labels, draws.labels}) : draws.labels;
}

/// Trains the student on the pool; its momentum starts at 0.
void dreams::teach(const program_call& call, work_state& now) const {
  const auto by_channel = [&](const std::vector<float>& values) {
    return at::tensor(values, at::kFloat).to(call.device()).view({-1, 1, 1});
  };
  const pool_training lesson{.steps = settings_.student_steps,
                             .batch = settings_.student_batch,
                             .views = settings_.views,
                             .scale = by_channel(settings_.scale),
                             .shift = by_channel(settings_.shift),
                             .order = key_of(call, dream_draw::student),
                             .shown = key_of(call, dream_draw::shown_to_student)};
  at::Tensor momentum;
  train_student_on_pool(*net_, settings_.student(), call.in.at(flat_weights), now.images, lesson, now.student,
                        momentum);
}

slice_result dreams::run_call(const program_call& call) const {
  auto now = call.slice == 0 ? begun(call) : resume(call);
  dream(call, now);
  if (now.images.defined() && call.slice + 1 < settings_.rounds)
    teach(call, now);
  if (call.slice + 1 < settings_.rounds)
    return paused(call, now);
  return {.tensors = {{"images", now.images},
                      {"labels", now.labels},
                      {"objective", now.objective},
                      {"statistics", now.statistics}}};
}

} // namespace

program_ref synthesis_program(model_ref net, const synthesis_settings& settings) {
  return std::make_shared<dreams>(std::move(net), settings);
}

} // namespace mneme
