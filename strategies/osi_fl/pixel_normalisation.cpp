#include "strategies/osi_fl/pixel_normalisation.hpp"
#include <ATen/ATen.h>
namespace mneme {

at::Tensor pixel_normalisation::pixels_of(const at::Tensor& rows) const {
  const auto by_channel = [&](const std::vector<float>& values) {
    return at::tensor(values, at::kFloat).view({1, -1, 1, 1}).to(rows.device());
  };
  return ((rows.detach() - by_channel(shift)) / by_channel(scale) / 255.0).clamp(0.0, 1.0);
}

} // namespace mneme
