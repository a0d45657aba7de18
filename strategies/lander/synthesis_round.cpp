#include "strategies/lander/synthesis_round.hpp"
#include "runtime/method/gradients.hpp"
#include "runtime/models/function.hpp"
#include "strategies/shared/adam.hpp"
#include "strategies/shared/image_generator.hpp"
#include <ATen/ATen.h>
#include <limits>
#include <stdexcept>
namespace mneme {
namespace {

at::Tensor by_channel(const at::Tensor& values) { return values.view({-1, 1, 1}); }

} // namespace

generator_loss compute_generator_loss(const model& net, const synthesis_settings& settings, const at::Tensor& teacher,
                                      const at::Tensor& student, const at::Tensor& shown, const at::Tensor& labels,
                                      const at::Tensor& anchors, const at::Tensor& past) {
  const class_range outputs{0, settings.classes + settings.embedding};
  const auto inputs = shown.unsqueeze(0).contiguous(); // [1, B, ...]
  const auto answered = net.differentiable(teacher.unsqueeze(0), inputs, outputs, {.statistics = true});
  const auto logits = answered.logits[0].narrow(1, 0, settings.seen_classes); // [B, c]
  generator_loss loss;
  loss.labels = -at::log_softmax(logits, 1).gather(1, labels.unsqueeze(1)).mean();

  const auto matched = match_statistics(answered.statistics, past, shown.options());
  loss.statistics = matched.distance;
  loss.seen_statistics = matched.now;

  loss.bound = loss.adversary = at::zeros({}, shown.options());
  if (settings.embedding > 0) {
    const auto mapped = answered.logits[0].narrow(1, settings.classes, settings.embedding);
    loss.bound = at::relu((mapped - anchors.index_select(0, labels)).square().mean() - settings.radius);
  }
  if (student.defined())
    loss.adversary = student_teacher_gap(
        logits, net.differentiable(student.unsqueeze(0), inputs, {0, settings.seen_classes}, {}).logits[0]);
  loss.total = loss.statistics * settings.statistics + loss.labels * settings.labels +
               loss.adversary * settings.adversary + loss.bound * settings.bound;
  return loss;
}

// -- the generator ----------------------------------------------------------------------------------------------------

namespace {

/// Trained tensors, each with its own Adam moments.
struct learning {
  adam generator, norm, layers, biases, mean, deviation;
};

struct learning_leaves {
  at::Tensor generator, norm, layers, biases, mean, deviation;
  [[nodiscard]] std::vector<at::Tensor> leaf_list() const { return {generator, norm, layers, biases, mean, deviation}; }
};

/// Maps label embeddings, normalized over the batch, to codes by one linear layer per chunk of rows: [B, W].
at::Tensor noise_of(const synthesis_settings& settings, const at::Tensor& embedded, const learning_leaves& leaves) {
  const auto [variance, mean] = at::var_mean(embedded, at::OptionalIntArrayRef({0}), false, true);
  const auto level = (embedded - mean) / (variance + 1e-5).sqrt() * leaves.norm[0] + leaves.norm[1]; // [B, E]
  std::vector<at::Tensor> chunks;
  for (std::int64_t i = 0; i < settings.noise_layers(); ++i) {
    const auto first = i * settings.chunk, count = std::min(settings.chunk, settings.batch - first);
    chunks.push_back(at::linear(level.narrow(0, first, count), leaves.layers[i], leaves.biases[i]));
  }
  return at::cat(chunks);
}

} // namespace

synthesis_result synthesis_round(const model& net, const model& generator, const synthesis_settings& settings,
                                 const at::Tensor& teacher, const at::Tensor& student, const at::Tensor& anchors,
                                 synthesis_state& now, const synthesis_draws& drawn) {
  const auto embedded = anchors.index_select(0, drawn.labels);
  const auto biases = at::zeros({settings.noise_layers(), settings.noise}, embedded.options());
  learning moved{adam(now.generator), adam(now.norm), adam(drawn.layers),
                 adam(biases),        adam(now.mean), adam(now.deviation)};
  const training_mode training;
  synthesis_result result{.total = std::numeric_limits<double>::infinity()};
  for (std::int64_t step = 0; step < settings.steps; ++step) {
    const learning_leaves leaves{leaf_of(moved.generator.weights()), leaf_of(moved.norm.weights()),
                                 leaf_of(moved.layers.weights()),    leaf_of(moved.biases.weights()),
                                 leaf_of(moved.mean.weights()),      leaf_of(moved.deviation.weights())};
    const auto codes = noise_of(settings, embedded, leaves).unflatten(1, {1, 1, -1}).unsqueeze(0); // [1, B, 1, 1, W]
    const auto generated =
        generator.differentiable(leaves.generator.unsqueeze(0), codes, {}, {.training = &training}).features;
    const auto pixels = images_of(generated, settings.shape)[0]; // [B, C, H, W] in [0, 1]
    const auto view = drawn.views.defined() ? crop_and_flip(pixels, drawn.views[step]) : pixels;
    const auto shown = (view - by_channel(leaves.mean)) / by_channel(leaves.deviation);
    auto loss = compute_generator_loss(net, settings, teacher, student, shown, drawn.labels, anchors, now.past);
    const auto gradients = gradients_of(loss.total, leaves.leaf_list());
    if (const auto total = loss.total.detach().item<double>(); total < result.total) {
      result.total = total;
      result.statistics = loss.statistics.detach().item<double>();
      result.best = pixels.detach();
    }
    adam* const parts[] = {&moved.generator, &moved.norm, &moved.layers, &moved.biases, &moved.mean, &moved.deviation};
    for (std::size_t i = 0; i < gradients.size(); ++i)
      parts[i]->step(gradients[i], {.rate = i < 4 ? settings.rate : settings.input_rate, .beta1 = 0.5});
    for (auto* term : {&loss.total, &loss.statistics, &loss.labels, &loss.adversary, &loss.bound})
      *term = term->detach();
    result.losses.push_back(std::move(loss));
  }
  if (!result.best.defined())
    throw std::runtime_error("no step of the generator had a finite loss");
  now.generator = moved.generator.weights();
  now.norm = moved.norm.weights();
  now.mean = moved.mean.weights();
  now.deviation = moved.deviation.weights();
  now.past = next_average(now.past, result.losses.back().seen_statistics); // updated once per round
  return result;
}

} // namespace mneme
