#include "runtime/data/pixel_constants.hpp"
#include "runtime/base/check.hpp"
#include "runtime/base/new_tensor.hpp"
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
namespace mneme {

pixel_constants measure_constants(const at::Tensor& images) {
  MNEME_CHECK(images.dim() == 4 && images.scalar_type() == at::kByte && images.numel() > 0, images.dim());
  const auto rows = images.size(0), channels = images.size(1), plane = images.size(2) * images.size(3);
  const auto input = images.contiguous();
  const auto pixels = static_cast<double>(rows * plane);
  pixel_constants constants;
  for (std::int64_t channel = 0; channel < channels; ++channel) {
    std::array<std::int64_t, 256> counts{};
    for (std::int64_t row = 0; row < rows; ++row) {
      const auto* const first = input.const_data_ptr<std::uint8_t>() + (row * channels + channel) * plane;
      for (std::int64_t i = 0; i < plane; ++i)
        ++counts[first[i]];
    }
    double sum = 0.0, squares = 0.0; // sums of integers, exact below 2^53, which is enough for a hundred billion pixels
    for (std::size_t value = 0; value < counts.size(); ++value) {
      const auto times = static_cast<double>(counts[value]), number = static_cast<double>(value);
      sum += times * number;
      squares += times * number * number;
    }
    const double mean = sum / pixels, variance = squares / pixels - mean * mean;
    constants.mean.push_back(mean / 255.0);
    constants.deviation.push_back(variance > 0.0 ? std::sqrt(variance) / 255.0 : 1.0);
  }
  return constants;
}

namespace {

/// Number of consecutive values of a row that share their constants: the size of a channel, or 1 for rows of numbers.
std::int64_t places_alike(const at::Tensor& numbers) {
  const auto plane = numbers.size(2) * numbers.size(3);
  return numbers.size(1) == 1 && numbers.size(2) == 1 ? 1 : plane;
}

} // namespace

pixel_constants measure_numbers(const at::Tensor& numbers) {
  MNEME_CHECK(numbers.dim() == 4 && numbers.scalar_type() == at::kFloat && numbers.numel() > 0, numbers.dim());
  const auto input = numbers.contiguous();
  const auto alike = places_alike(input), width = input.numel() / input.size(0);
  const auto groups = static_cast<std::size_t>(width / alike);
  std::vector<double> sums(groups, 0.0), squares(groups, 0.0);
  const auto count = static_cast<double>(input.size(0) * alike);
  const auto each = [&](auto use) {
    const auto* at = input.const_data_ptr<float>();
    for (std::int64_t row = 0; row < input.size(0); ++row)
      for (std::size_t group = 0; group < groups; ++group)
        for (std::int64_t i = 0; i < alike; ++i)
          use(group, static_cast<double>(*at++));
  };
  each([&](std::size_t group, double value) { sums[group] += value; });
  pixel_constants constants;
  for (const auto sum : sums)
    constants.mean.push_back(sum / count);
  each([&](std::size_t group, double value) {
    const auto off = value - constants.mean[group];
    squares[group] += off * off;
  });
  for (const auto square : squares)
    constants.deviation.push_back(square > 0.0 ? std::sqrt(square / count) : 1.0);
  return constants;
}

pixel_constants unit_range(const at::Tensor& numbers) {
  MNEME_CHECK(numbers.dim() == 4 && numbers.scalar_type() == at::kFloat && numbers.numel() > 0, numbers.dim());
  const auto input = numbers.contiguous();
  const auto alike = places_alike(input), width = input.numel() / input.size(0);
  const auto groups = static_cast<std::size_t>(width / alike);
  std::vector<double> least(groups, std::numeric_limits<double>::infinity()),
      most(groups, -std::numeric_limits<double>::infinity());
  const auto* at = input.const_data_ptr<float>();
  for (std::int64_t row = 0; row < input.size(0); ++row)
    for (std::size_t group = 0; group < groups; ++group)
      for (std::int64_t i = 0; i < alike; ++i, ++at) {
        least[group] = std::min(least[group], static_cast<double>(*at));
        most[group] = std::max(most[group], static_cast<double>(*at));
      }
  pixel_constants constants{.mean = least};
  for (std::size_t group = 0; group < groups; ++group)
    constants.deviation.push_back(most[group] > least[group] ? most[group] - least[group] : 1.0);
  return constants;
}

at::Tensor standardized(const at::Tensor& numbers, const pixel_constants& by) {
  const auto input = numbers.contiguous();
  const auto alike = places_alike(input);
  auto moved = new_tensor(input.sizes(), at::kFloat);
  const auto* from = input.const_data_ptr<float>();
  auto* to = moved.mutable_data_ptr<float>();
  for (std::int64_t row = 0; row < input.size(0); ++row)
    for (std::size_t group = 0; group < by.mean.size(); ++group)
      for (std::int64_t i = 0; i < alike; ++i)
        *to++ = static_cast<float>((static_cast<double>(*from++) - by.mean[group]) / by.deviation[group]);
  return moved;
}

} // namespace mneme
