#include "runtime/base/rng.hpp"
#include "runtime/kernels/pooling.hpp"
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <limits>
#include <vector>
using namespace mneme;
using kernels::pool_shape;

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

/// Whole numbers below 5, so that there are ties.
std::vector<float> drawn(std::int64_t n, std::uint64_t seed) {
  rng_stream draw({.seed = seed, .what = first_method_purpose});
  std::vector<float> values(static_cast<std::size_t>(n));
  for (auto& value : values)
    value = static_cast<float>(draw.below(5));
  return values;
}

struct pooled {
  std::vector<float> y, dx;
};

pooled by_kernels(const pool_shape& of, const std::vector<float>& x, const std::vector<float>& dy) {
  pooled made{std::vector<float>(dy.size()), std::vector<float>(x.size(), 7.0F)};
  std::vector<std::uint8_t> places(dy.size());
  kernels::max_pool(of, x.data(), made.y.data(), places.data());
  kernels::max_pool_back(of, dy.data(), places.data(), made.dx.data());
  return made;
}

/// Window by window; the first of equals wins.
pooled by_hand(const pool_shape& of, const std::vector<float>& x, const std::vector<float>& dy) {
  pooled made{std::vector<float>(dy.size()), std::vector<float>(x.size())};
  std::size_t out = 0;
  for (std::int64_t image = 0; image < of.rows; ++image)
    for (std::int64_t oy = 0; oy < of.out_height(); ++oy)
      for (std::int64_t ox = 0; ox < of.out_width(); ++ox)
        for (std::int64_t c = 0; c < of.channels; ++c, ++out) {
          std::size_t best = x.size();
          for (std::int64_t tap = 0; tap < of.window * of.window; ++tap) {
            const auto py = oy * of.stride + tap / of.window - of.padding;
            const auto px = ox * of.stride + tap % of.window - of.padding;
            if (py < 0 || py >= of.height || px < 0 || px >= of.width)
              continue;
            const auto at = static_cast<std::size_t>(((image * of.height + py) * of.width + px) * of.channels + c);
            best = best == x.size() || x[at] > x[best] ? at : best;
          }
          made.y[out] = x[best];
          made.dx[best] += dy[out];
        }
  return made;
}

} // namespace

TEST_CASE("maxima over windows and their gradients equal a plain loop, ties included", "[kernels]") {
  for (const auto& [window, stride, padding] :
       {std::array<std::int64_t, 3>{1, 1, 0}, {2, 2, 0}, {2, 1, 1}, {3, 2, 1}, {3, 3, 0}, {3, 1, 1}, {15, 1, 7}})
    for (const std::int64_t channels : {1, 5, 16, 33})
      for (const std::int64_t side : {15, 16}) {
        const pool_shape of{.rows = 2,
                            .height = side,
                            .width = side + 2,
                            .channels = channels,
                            .window = window,
                            .stride = stride,
                            .padding = padding};
        const auto x = drawn(of.rows * of.height * of.width * channels, 1);
        const auto dy = drawn(of.rows * of.out_height() * of.out_width() * channels, 2);
        const auto ours = by_kernels(of, x, dy), expected = by_hand(of, x, dy);
        INFO("window " << window << ", stride " << stride << ", padding " << padding << ", channels " << channels
                       << ", side " << side);
        CHECK((ours.y == expected.y));
        CHECK((ours.dx == expected.dx)); // sums of whole numbers are exact
      }
}

TEST_CASE("a row or column that fills no window is left out", "[kernels]") {
  const pool_shape of{.rows = 1, .height = 3, .width = 3, .channels = 1};
  const auto made = by_kernels(of, {1, 2, 9, 3, 4, 9, 9, 9, 9}, {5});
  CHECK(made.y == std::vector<float>{4});
  CHECK(made.dx == std::vector<float>{0, 0, 0, 0, 5, 0, 0, 0, 0});
}

TEST_CASE("padding never wins, not even over minus infinity", "[kernels]") {
  const pool_shape of{.rows = 1, .height = 2, .width = 2, .channels = 1, .window = 3, .stride = 2, .padding = 1};
  const auto made = by_kernels(of, {-infinity, -infinity, -infinity, -infinity}, {5});
  CHECK(made.y == std::vector<float>{-infinity});
  CHECK(made.dx == std::vector<float>{5, 0, 0, 0});
}

TEST_CASE("a NaN wins its windows", "[kernels]") {
  const pool_shape of{.rows = 1, .height = 2, .width = 4, .channels = 1};
  const auto made = by_kernels(of, {1, NAN, 1, 2, infinity, 3, 4, 5}, {5, 6});
  CHECK(std::isnan(made.y[0]));
  CHECK(made.y[1] == 5.0F);
  CHECK(made.dx == std::vector<float>{0, 5, 0, 0, 0, 0, 0, 6});
}

TEST_CASE("mean pooling is the mean over an image's pixels", "[kernels]") {
  for (const std::int64_t channels : {1, 7, 16, 40}) {
    const std::int64_t rows = 3, pixels = 15;
    const auto x = drawn(rows * pixels * channels, 1);
    std::vector<float> y(static_cast<std::size_t>(rows * channels), 7.0F);
    kernels::mean_pool(rows, pixels, channels, x.data(), y.data());
    for (std::int64_t row = 0; row < rows; ++row)
      for (std::int64_t c = 0; c < channels; ++c) {
        float sum = 0.0F;
        for (std::int64_t pixel = 0; pixel < pixels; ++pixel)
          sum += x[static_cast<std::size_t>((row * pixels + pixel) * channels + c)];
        CHECK(y[static_cast<std::size_t>(row * channels + c)] == sum / 15.0F);
      }
  }
}
