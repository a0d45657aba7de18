#include "runtime/base/rng.hpp"
#include "runtime/models/pooling.hpp"
#include <ATen/ATen.h> // before Catch2, whose CHECK must be the last definition

#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <limits>
#include <vector>
using namespace mneme;

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

/// Integers below 5, so that there are ties.
std::vector<float> drawn(std::int64_t n, std::uint64_t seed) {
  rng_stream draw({.seed = seed, .purpose = first_method_purpose});
  std::vector<float> values(static_cast<std::size_t>(n));
  for (auto& value : values)
    value = static_cast<float>(draw.below(5));
  return values;
}

struct pooled {
  std::vector<float> y, dx;
};

std::vector<float> values_of(const at::Tensor& tensor) {
  const auto* const first = tensor.const_data_ptr<float>();
  return {first, first + tensor.numel()};
}

/// Layer for two models with shared images.
pooled by_layer(const max_pool_layer::shape& shape, const std::vector<float>& x, const std::vector<float>& dy) {
  const max_pool_layer layer(shape);
  const auto rows = static_cast<std::int64_t>(x.size()) / shape.in.floats() / 2;
  const auto in = at::tensor(x).view({2, rows, -1});
  auto d_out = at::tensor(dy).view({2, rows, -1}), out = at::empty_like(d_out), d_in = at::full_like(in, 7.0F);
  at::Tensor kept, unused = at::zeros({2, 1});
  const layer_pass pass{unused, 2, rows};
  layer.forward(pass, in, out, kept);
  layer.backward(pass, {in, out, kept, d_out, &d_in}, {unused});
  return {values_of(out), values_of(d_in)};
}

/// Reference, window by window; ties go to the first element.
pooled by_hand(const max_pool_layer::shape& shape, const std::vector<float>& x, const std::vector<float>& dy) {
  const auto in = shape.in, windows = max_pool_layer(shape).out_shape();
  pooled made{std::vector<float>(dy.size()), std::vector<float>(x.size())};
  std::size_t out = 0;
  for (std::int64_t image = 0; out < dy.size(); ++image)
    for (std::int64_t oy = 0; oy < windows.height; ++oy)
      for (std::int64_t ox = 0; ox < windows.width; ++ox)
        for (std::int64_t c = 0; c < in.channels; ++c, ++out) {
          std::size_t best = x.size();
          for (std::int64_t tap = 0; tap < shape.window * shape.window; ++tap) {
            const auto py = oy * shape.stride + tap / shape.window - shape.padding;
            const auto px = ox * shape.stride + tap % shape.window - shape.padding;
            if (py < 0 || py >= in.height || px < 0 || px >= in.width)
              continue;
            const auto place = static_cast<std::size_t>(((image * in.height + py) * in.width + px) * in.channels + c);
            best = best == x.size() || x[place] > x[best] ? place : best;
          }
          made.y[out] = x[best];
          made.dx[best] += dy[out];
        }
  return made;
}

} // namespace

TEST_CASE("max pooling and its gradients equal a plain loop, including ties", "[models]") {
  for (const auto& [window, stride, padding] :
       {std::array<std::int64_t, 3>{1, 1, 0}, {2, 2, 0}, {2, 1, 1}, {3, 2, 1}, {3, 3, 0}, {3, 1, 1}, {15, 1, 7}})
    for (const std::int64_t channels : {1, 5, 16, 33})
      for (const std::int64_t side : {15, 16}) {
        const max_pool_layer::shape shape{
            .in = {side, side + 2, channels}, .window = window, .stride = stride, .padding = padding};
        const auto x = drawn(4 * shape.in.floats(), 1); // two images each
        const auto dy = drawn(4 * max_pool_layer(shape).out_shape().floats(), 2);
        const auto ours = by_layer(shape, x, dy), expected = by_hand(shape, x, dy);
        INFO("window " << window << ", stride " << stride << ", padding " << padding << ", channels " << channels
                       << ", side " << side);
        CHECK((ours.y == expected.y));
        CHECK((ours.dx == expected.dx)); // sums of integers are exact
      }
}

TEST_CASE("rows and columns that fill no window are ignored", "[models]") {
  const auto made = by_layer({.in = {3, 3, 1}}, {1, 2, 9, 3, 4, 9, 9, 9, 9, 8, 7, 9, 6, 5, 9, 9, 9, 9}, {5, 6});
  CHECK(made.y == std::vector<float>{4, 8});
  CHECK(made.dx == std::vector<float>{0, 0, 0, 0, 5, 0, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0, 0});
}

TEST_CASE("padding never is the maximum, not even compared with minus infinity", "[models]") {
  const max_pool_layer::shape shape{.in = {2, 2, 1}, .window = 3, .stride = 2, .padding = 1};
  const auto made = by_layer(shape, std::vector<float>(8, -infinity), {5, 6});
  CHECK(made.y == std::vector<float>{-infinity, -infinity});
  CHECK(made.dx == std::vector<float>{5, 0, 0, 0, 6, 0, 0, 0});
}

TEST_CASE("a NaN is the maximum of its windows", "[models]") {
  const auto made = by_layer({.in = {2, 2, 1}}, {1, NAN, infinity, 3, 1, 2, 4, 5}, {5, 6});
  CHECK(std::isnan(made.y[0]));
  CHECK(made.y[1] == 5.0F);
  CHECK(made.dx == std::vector<float>{0, 5, 0, 0, 0, 0, 0, 6});
}
