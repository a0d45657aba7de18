#include "strategies/lga/monitor_score.hpp"
#include <ATen/ATen.h>
#include <cmath>
#include <map>
namespace mneme {
namespace {

constexpr double bound_share = 0.1;
constexpr int draws_max = 20;

} // namespace

at::Tensor accepted_noise(const at::Tensor& variances, const feature_noise& how, rng_stream& stream) {
  const auto deviations = how.as_printed ? variances.sqrt() : variances;
  const double bound = bound_share * variances.sum().item<double>();
  auto noise = at::zeros_like(variances);
  for (int draw = 0; draw < draws_max; ++draw) {
    auto* const values = noise.mutable_data_ptr<double>();
    for (std::int64_t i = 0; i < noise.numel(); ++i)
      values[i] = stream.normal();
    noise.mul_(deviations).mul_(how.scale);
    const double length = noise.norm().item<double>(), measured = how.as_printed ? length : length * length;
    if (measured <= bound)
      return noise;
    if (draw + 1 == draws_max)
      noise.mul_((how.as_printed ? bound : std::sqrt(bound)) / length * (1.0 - 1e-12));
  }
  return noise;
}

at::Tensor variances_by_class(const at::Tensor& features, const at::Tensor& labels) {
  const auto rows = features.cpu().to(at::kDouble);
  const auto classes = std::get<0>(at::_unique(labels.cpu(), /*sorted=*/true));
  std::vector<at::Tensor> found;
  for (std::int64_t c = 0; c < classes.size(0); ++c) {
    const auto own = rows.index_select(0, (labels.cpu() == classes[c]).nonzero().squeeze(1));
    found.push_back(own.size(0) > 1 ? own.var(0, /*unbiased=*/true) : at::zeros({rows.size(1)}, at::kDouble));
  }
  return at::stack(found);
}

double next_noise_scale(double scale, std::int64_t old_classes, const at::Tensor& traces) {
  const auto fresh = static_cast<double>(traces.size(0)), old = static_cast<double>(old_classes);
  return ((old_classes == 0 ? 0.0 : old * scale) + traces.sum().item<double>()) / (old + fresh);
}

double monitor_score(const at::Tensor& features, const at::Tensor& labels, const at::Tensor& head,
                     const at::Tensor& bias, const feature_noise& how, const rng_key& key) {
  const auto rows = features.cpu().to(at::kDouble), truth = labels.cpu();
  const auto weight = head.cpu().to(at::kDouble).t(), offset = bias.cpu().to(at::kDouble);
  const auto right = [&](const at::Tensor& shown) {
    return (at::addmm(offset, shown, weight).argmax(1) == truth).sum().item<std::int64_t>();
  };
  const auto total = static_cast<double>(rows.size(0));
  if (how.copies == 0)
    return static_cast<double>(right(rows)) / total;
  const auto variances = variances_by_class(rows, truth);
  const auto place = std::get<1>(at::_unique(truth, /*sorted=*/true, /*return_inverse=*/true));
  rng_stream stream(key);
  std::int64_t answers = 0;
  for (std::int64_t copy = 0; copy < how.copies; ++copy) {
    auto shown = rows.clone();
    for (std::int64_t i = 0; i < shown.size(0); ++i)
      shown[i] += accepted_noise(variances[place[i].item<std::int64_t>()], how, stream);
    answers += right(shown);
  }
  return static_cast<double>(answers) / (total * static_cast<double>(how.copies));
}

} // namespace mneme
