#include "strategies/lander/dream_round.hpp"
#include "runtime/method/gradients.hpp"
#include "runtime/models/function.hpp"
#include "strategies/lander/image_dreams.hpp"
#include "strategies/shared/adam.hpp"
#include <ATen/ATen.h>
#include <cmath>
#include <limits>
#include <stdexcept>
namespace mneme {
namespace {

constexpr double kept_share = 0.9; // of the average of statistics, round by round

at::Tensor by_channel(const at::Tensor& values) { return values.view({-1, 1, 1}); }

/// Where both agree, they are to disagree: -mean of KL(teacher || student) over the batch.
at::Tensor disagreement(const at::Tensor& logits, const at::Tensor& other) {
  const auto log_p = at::log_softmax(logits, 1);
  const auto agree = (other.argmax(1) == logits.argmax(1)).to(logits.scalar_type());
  const auto divergence = (log_p.exp() * (log_p - at::log_softmax(other, 1))).sum(1);
  return -(divergence * agree).mean();
}

} // namespace

dream_loss loss_of_dreams(const model& net, const dream_settings& with, const at::Tensor& teacher,
                          const at::Tensor& student, const at::Tensor& shown, const at::Tensor& labels,
                          const at::Tensor& anchors, const at::Tensor& past) {
  const class_range outputs{0, with.classes + with.embedding};
  const auto inputs = shown.unsqueeze(0).contiguous(); // [1, B, ...]
  const auto answered = net.differentiable(teacher.unsqueeze(0), inputs, outputs, {.statistics = true});
  const auto logits = answered.logits[0].narrow(1, 0, with.opened); // [B, c]
  dream_loss loss;
  loss.labels = -at::log_softmax(logits, 1).gather(1, labels.unsqueeze(1)).mean();

  // |running - (0.1 now + 0.9 of earlier rounds)| of every layer, means and variances; in the first round |running -
  // now| (Yin et al. 2020, eq. 4, without squares).
  std::vector<at::Tensor> now;
  loss.statistics = at::zeros({}, shown.options());
  std::int64_t at = 0;
  const auto match = [&](const at::Tensor& running, const at::Tensor& value) {
    const auto level =
        past.defined() ? value * (1.0 - kept_share) + past.narrow(0, at, value.numel()) * kept_share : value;
    loss.statistics = loss.statistics + (running - level).norm();
    now.push_back(value.detach());
    at += value.numel();
  };
  for (const auto& layer : answered.statistics) {
    match(layer.running_mean[0], layer.mean[0]);
    match(layer.running_variance[0], layer.variance[0]);
  }
  loss.seen_statistics = now.empty() ? at::zeros({0}, shown.options()) : at::cat(now);

  loss.bound = loss.adversary = at::zeros({}, shown.options());
  if (with.embedding > 0) {
    const auto mapped = answered.logits[0].narrow(1, with.classes, with.embedding);
    loss.bound = at::relu((mapped - anchors.index_select(0, labels)).square().mean() - with.radius);
  }
  if (student.defined())
    loss.adversary =
        disagreement(logits, net.differentiable(student.unsqueeze(0), inputs, {0, with.opened}, {}).logits[0]);
  loss.total = loss.statistics * with.statistics + loss.labels * with.labels + loss.adversary * with.adversary +
               loss.bound * with.bound;
  return loss;
}

at::Tensor viewed(const at::Tensor& images, const at::Tensor& views) {
  const auto rows = images.size(0), channels = images.size(1), height = images.size(2), width = images.size(3);
  const auto padded_width = width + 2 * view_padding;
  const auto padded = at::constant_pad_nd(images, {view_padding, view_padding, view_padding, view_padding});
  const auto columns = at::arange(width, at::kLong).view({1, 1, width});
  const auto part = [&](std::int64_t i) { return views.select(1, i).view({rows, 1, 1}); };
  const auto across = at::where(part(2) > 0, width - 1 - columns, columns) + part(1);
  const auto down = at::arange(height, at::kLong).view({1, height, 1}) + part(0);
  const auto places = (down * padded_width + across).view({rows, 1, height * width}).to(images.device());
  return padded.flatten(2).gather(2, places.expand({rows, channels, height * width})).view_as(images);
}

// -- the generator ----------------------------------------------------------------------------------------------------

namespace {

/// What one step of Adam moves, each with moments of its own.
struct learning {
  adam generator, norm, layers, biases, mean, deviation;
};

struct learning_leaves {
  at::Tensor generator, norm, layers, biases, mean, deviation;
  [[nodiscard]] std::vector<at::Tensor> listed() const { return {generator, norm, layers, biases, mean, deviation}; }
};

/// Embeddings of the labels, normalised over the batch, through a layer for each chunk of rows: [B, W].
at::Tensor noise_of(const dream_settings& with, const at::Tensor& embedded, const learning_leaves& leaves) {
  const auto [variance, mean] = at::var_mean(embedded, at::OptionalIntArrayRef({0}), 0, true);
  const auto level = (embedded - mean) / (variance + 1e-5).sqrt() * leaves.norm[0] + leaves.norm[1]; // [B, E]
  std::vector<at::Tensor> chunks;
  for (std::int64_t i = 0; i < with.noise_layers(); ++i) {
    const auto first = i * with.chunk, count = std::min(with.chunk, with.batch - first);
    chunks.push_back(at::linear(level.narrow(0, first, count), leaves.layers[i], leaves.biases[i]));
  }
  return at::cat(chunks);
}

} // namespace

dream_result dream_round(const model& net, const model& generator, const dream_settings& with,
                         const at::Tensor& teacher, const at::Tensor& student, const at::Tensor& anchors, dreamer& now,
                         const dream_draws& drawn) {
  const auto embedded = anchors.index_select(0, drawn.labels);
  const auto biases = at::zeros({with.noise_layers(), with.noise}, embedded.options());
  learning moved{adam(now.generator), adam(now.norm), adam(drawn.layers),
                 adam(biases),        adam(now.mean), adam(now.deviation)};
  const training_mode training;
  dream_result result{.total = std::numeric_limits<double>::infinity()};
  for (std::int64_t step = 0; step < with.steps; ++step) {
    const learning_leaves leaves{leaf_of(moved.generator.weights()), leaf_of(moved.norm.weights()),
                                 leaf_of(moved.layers.weights()),    leaf_of(moved.biases.weights()),
                                 leaf_of(moved.mean.weights()),      leaf_of(moved.deviation.weights())};
    const auto codes = noise_of(with, embedded, leaves).unflatten(1, {1, 1, -1}).unsqueeze(0); // [1, B, 1, 1, W]
    const auto generated =
        generator.differentiable(leaves.generator.unsqueeze(0), codes, {}, {.training = &training}).features;
    const auto pixels = pictures_of(generated, with.shape)[0]; // [B, C, H, W] in [0, 1]
    const auto view = drawn.views.defined() ? viewed(pixels, drawn.views[step]) : pixels;
    const auto shown = (view - by_channel(leaves.mean)) / by_channel(leaves.deviation);
    auto loss = loss_of_dreams(net, with, teacher, student, shown, drawn.labels, anchors, now.past);
    const auto slopes = gradients_of(loss.total, leaves.listed());
    if (const auto total = loss.total.detach().item<double>(); total < result.total) {
      result.total = total;
      result.statistics = loss.statistics.detach().item<double>();
      result.best = pixels.detach();
    }
    adam* const parts[] = {&moved.generator, &moved.norm, &moved.layers, &moved.biases, &moved.mean, &moved.deviation};
    for (std::size_t i = 0; i < slopes.size(); ++i)
      parts[i]->step(slopes[i], {.rate = i < 4 ? with.rate : with.input_rate, .beta1 = 0.5});
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
  const auto& last = result.losses.back().seen_statistics; // the average moves once in a round
  now.past = now.past.defined() ? now.past * kept_share + last * (1.0 - kept_share) : last;
  return result;
}

// -- the student ------------------------------------------------------------------------------------------------------

at::Tensor student_start(const model& net, const at::Tensor& weights, std::int64_t classes, const rng_key& key) {
  auto flat = weights.clone();
  rng_stream draw(key);
  const auto normal = [&](at::Tensor& values, double mean, double deviation) {
    for (std::int64_t i = 0; i < values.numel(); ++i)
      values.mutable_data_ptr<float>()[i] = static_cast<float>(mean + deviation * draw.normal());
  };
  const auto drawn = [&](const std::vector<std::int64_t>& shape, double mean, double deviation) {
    auto values = at::empty(shape, at::kFloat);
    normal(values, mean, deviation);
    return values;
  };
  const auto xavier = [](const std::vector<std::int64_t>& shape) { // Glorot and Bengio 2010: 2 / (fan in + fan out)
    const auto pixels = c10::multiply_integers(shape) / (shape[0] * shape[1]);
    return std::sqrt(2.0 / static_cast<double>((shape[0] + shape[1]) * pixels));
  };
  for (const auto& entry : net.layout()) {
    if (entry.buffer)
      continue;
    const bool is_matrix = entry.shape.size() > 1;
    if (!entry.head) {
      const bool scales = entry.name.ends_with(".weight");
      put_as_in_files(flat, entry,
                      is_matrix ? drawn(entry.shape, 0.0, xavier(entry.shape))
                                : drawn(entry.shape, scales ? 1.0 : 0.0, scales ? 0.02 : 0.0));
      continue;
    }
    auto rows = as_in_files(flat, entry).clone();
    if (entry.whole || rows.size(0) <= classes)
      continue;
    auto shape = entry.shape;
    shape[0] -= classes;
    rows.narrow(0, classes, shape[0]).copy_(drawn(shape, 0.0, is_matrix ? xavier(shape) : 1.0));
    put_as_in_files(flat, entry, rows);
  }
  return flat;
}

void teach_student(const model& net, const dream_settings& with, const at::Tensor& teacher, const at::Tensor& inputs,
                   at::Tensor& student, at::Tensor& momentum) {
  const class_range outputs{0, with.classes + with.embedding};
  const auto rows = inputs.unsqueeze(0).contiguous();
  const auto taught = net.differentiable(teacher.unsqueeze(0), rows, outputs, {}).logits[0].detach();
  const training_mode training;
  const auto s = leaf_of(student);
  const auto answered = net.differentiable(s.unsqueeze(0), rows, outputs, {.training = &training, .statistics = true});
  const double T = with.student_temperature;
  const auto log_s = at::log_softmax(answered.logits[0].narrow(1, 0, with.opened) / T, 1);
  const auto log_t = at::log_softmax(taught.narrow(1, 0, with.opened) / T, 1);
  auto loss = (log_t.exp() * (log_t - log_s)).sum(1).mean() * (T * T);
  if (with.embedding > 0)
    loss = loss + (answered.logits[0] - taught).narrow(1, with.classes, with.embedding).square().mean() * with.bound;
  auto decayed = student * with.student_decay;
  for (const auto& entry : net.layout())
    if (entry.buffer)
      decayed.narrow(0, entry.offset, entry.size).zero_();
  const auto slope = gradients_of(loss, {s}).front() + decayed;
  momentum = momentum.defined() ? momentum * with.student_momentum + slope : slope;
  const auto next = student - momentum * with.student_rate;
  student = with_moved_statistics(next.unsqueeze(0), answered.statistics)[0].detach();
}

} // namespace mneme
