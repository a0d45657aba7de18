#include "runtime/data/pixel_constants.hpp"
#include "runtime/base/check.hpp"
#include <array>
#include <cmath>
namespace mneme {

pixel_constants measured_constants(const at::Tensor& images) {
  MNEME_CHECK(images.dim() == 4 && images.scalar_type() == at::kByte && images.numel() > 0, images.dim());
  const auto rows = images.size(0), channels = images.size(1), plane = images.size(2) * images.size(3);
  const auto input = images.contiguous();
  const auto pixels = static_cast<double>(rows * plane);
  pixel_constants made;
  for (std::int64_t channel = 0; channel < channels; ++channel) {
    std::array<std::int64_t, 256> counts{};
    for (std::int64_t row = 0; row < rows; ++row) {
      const auto* const first = input.const_data_ptr<std::uint8_t>() + (row * channels + channel) * plane;
      for (std::int64_t i = 0; i < plane; ++i)
        ++counts[first[i]];
    }
    double sum = 0.0, squares = 0.0; // whole numbers, below 2^53 for a hundred billion pixels
    for (std::size_t value = 0; value < counts.size(); ++value) {
      const auto times = static_cast<double>(counts[value]), number = static_cast<double>(value);
      sum += times * number;
      squares += times * number * number;
    }
    const double mean = sum / pixels, variance = squares / pixels - mean * mean;
    made.mean.push_back(mean / 255.0);
    made.deviation.push_back(variance > 0.0 ? std::sqrt(variance) / 255.0 : 1.0);
  }
  return made;
}

} // namespace mneme
