#include "runtime/data/resize.hpp"
#include "runtime/base/check.hpp"
#include "runtime/base/new_tensor.hpp"
#include <algorithm>
#include <vector>
namespace mneme {
namespace {

// Shapes: N images, C channels, H height, W width.

/// Filter of one output pixel along one axis: (near * (whole - weight) + far * weight) / whole.
struct tap {
  std::int64_t near = 0, far = 0, weight = 0;
};

/// The taps of all output pixels. The center of pixel i lies at input position (i + 1/2) from / to - 1/2, clamped to
/// the image. Weights are integers in units of 1 / whole, where whole = 2 to.
std::vector<tap> taps(std::int64_t from, std::int64_t to) {
  const auto whole = 2 * to;
  std::vector<tap> weights;
  for (std::int64_t i = 0; i < to; ++i) {
    const auto center = std::max<std::int64_t>((2 * i + 1) * from - to, 0);
    const auto near = std::min(center / whole, from - 1);
    weights.push_back({.near = near, .far = std::min(near + 1, from - 1), .weight = center % whole});
  }
  return weights;
}

} // namespace

at::Tensor resize_bilinear(const at::Tensor& images, std::int64_t height, std::int64_t width) {
  MNEME_CHECK(images.dim() == 4 && images.scalar_type() == at::kByte, images.dim(), images.scalar_type());
  const auto input = images.contiguous(); // [N, C, H, W]
  const auto rows = taps(input.size(2), height), columns = taps(input.size(3), width);
  auto output = new_tensor({input.size(0), input.size(1), height, width}, at::kByte);
  const auto* plane = input.const_data_ptr<std::uint8_t>();
  auto* out = output.mutable_data_ptr<std::uint8_t>();
  const auto whole_y = 2 * height, whole_x = 2 * width, whole = whole_y * whole_x;
  for (std::int64_t planes = input.size(0) * input.size(1); planes > 0; --planes) {
    for (const auto& y : rows) {
      const auto* upper = plane + y.near * input.size(3);
      const auto* lower = plane + y.far * input.size(3);
      for (const auto& x : columns) {
        const auto above = upper[x.near] * (whole_x - x.weight) + upper[x.far] * x.weight;
        const auto below = lower[x.near] * (whole_x - x.weight) + lower[x.far] * x.weight;
        const auto sum = above * (whole_y - y.weight) + below * y.weight;
        *out++ = static_cast<std::uint8_t>((2 * sum + whole) / (2 * whole));
      }
    }
    plane += input.size(2) * input.size(3);
  }
  return output;
}

} // namespace mneme
