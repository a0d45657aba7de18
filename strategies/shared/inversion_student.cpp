#include "strategies/shared/inversion_student.hpp"
#include "runtime/method/gradients.hpp"
#include "strategies/shared/image_generator.hpp"
#include <ATen/ATen.h>
#include <cmath>
#include <numeric>
namespace mneme {
namespace {

constexpr double kept_share = 0.9; // share of the past average that a round keeps

} // namespace

statistics_match match_statistics(const std::vector<batch_statistics>& layers, const at::Tensor& past,
                                  const at::TensorOptions& like) {
  std::vector<at::Tensor> now;
  statistics_match match{.distance = at::zeros({}, like)};
  std::int64_t at = 0;
  const auto add = [&](const at::Tensor& running, const at::Tensor& value) {
    const auto level =
        past.defined() ? value * (1.0 - kept_share) + past.narrow(0, at, value.numel()) * kept_share : value;
    match.distance = match.distance + (running - level).norm();
    now.push_back(value.detach());
    at += value.numel();
  };
  for (const auto& layer : layers) {
    add(layer.running_mean[0], layer.mean[0]);
    add(layer.running_variance[0], layer.variance[0]);
  }
  match.now = now.empty() ? at::zeros({0}, like) : at::cat(now);
  return match;
}

at::Tensor next_average(const at::Tensor& past, const at::Tensor& now) {
  return past.defined() ? past * kept_share + now * (1.0 - kept_share) : now;
}

at::Tensor student_teacher_gap(const at::Tensor& logits, const at::Tensor& other) {
  const auto log_p = at::log_softmax(logits, 1);
  const auto agree = (other.argmax(1) == logits.argmax(1)).to(logits.scalar_type());
  const auto divergence = (log_p.exp() * (log_p - at::log_softmax(other, 1))).sum(1);
  return -(divergence * agree).mean();
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
  const auto xavier = [](const std::vector<std::int64_t>& shape) { // Glorot and Bengio 2010: 2 / (fan_in + fan_out)
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

void train_student(const model& net, const student_rules& rules, const at::Tensor& teacher, const at::Tensor& inputs,
                   at::Tensor& student, at::Tensor& momentum) {
  const class_range outputs{0, rules.classes + rules.embedding};
  const auto rows = inputs.unsqueeze(0).contiguous();
  const auto teacher_output = net.differentiable(teacher.unsqueeze(0), rows, outputs, {}).logits[0].detach();
  const training_mode training;
  const auto s = leaf_of(student);
  const auto answered = net.differentiable(s.unsqueeze(0), rows, outputs, {.training = &training, .statistics = true});
  const double T = rules.temperature;
  const auto log_s = at::log_softmax(answered.logits[0].narrow(1, 0, rules.seen_classes) / T, 1);
  const auto log_t = at::log_softmax(teacher_output.narrow(1, 0, rules.seen_classes) / T, 1);
  auto loss = (log_t.exp() * (log_t - log_s)).sum(1).mean() * (T * T);
  if (rules.embedding > 0)
    loss = loss + (answered.logits[0] - teacher_output).narrow(1, rules.classes, rules.embedding).square().mean() *
                      rules.map_weight;
  auto decayed = student * rules.decay;
  for (const auto& entry : net.layout())
    if (entry.buffer)
      decayed.narrow(0, entry.offset, entry.size).zero_();
  const auto gradient = gradients_of(loss, {s}).front() + decayed;
  momentum = momentum.defined() ? momentum * rules.momentum + gradient : gradient;
  const auto next = student - momentum * rules.rate;
  student = with_updated_running_stats(next.unsqueeze(0), answered.statistics)[0].detach();
}

void train_student_on_pool(const model& net, const student_rules& rules, const at::Tensor& teacher,
                           const at::Tensor& images, const pool_training& how, at::Tensor& student,
                           at::Tensor& momentum) {
  rng_stream draw(how.order), view(how.shown);
  std::vector<std::int64_t> order(static_cast<std::size_t>(images.size(0)));
  std::iota(order.begin(), order.end(), 0);
  auto next = order.size();
  for (std::int64_t step = 0; step < how.steps; ++step) {
    if (next == order.size()) {
      draw.shuffle(std::span(order));
      next = 0;
    }
    const auto count = std::min(static_cast<std::size_t>(how.batch), order.size() - next);
    const auto places = at::tensor(std::vector<std::int64_t>(order.begin() + static_cast<std::ptrdiff_t>(next),
                                                             order.begin() + static_cast<std::ptrdiff_t>(next + count)),
                                   at::kLong);
    next += count;
    auto rows = images.index_select(0, places.to(images.device())).to(at::kFloat);
    if (how.views)
      rows = crop_and_flip(rows, draw_crops(rows.size(0), view));
    train_student(net, rules, teacher, rows * how.scale + how.shift, student, momentum);
  }
}

} // namespace mneme
