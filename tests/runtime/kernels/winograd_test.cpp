#include "runtime/kernels/winograd.hpp"
#include "tests/support/drawn_floats.hpp"
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <cstring>
#include <vector>
using namespace mneme;
using kernels::conv_shape;

namespace {

kernels::scratch memory; // reused by all calls, like the scratch memory of a tape

std::int64_t in_floats(const conv_shape& shape) { return shape.rows * shape.height * shape.width * shape.channels; }
std::int64_t out_floats(const conv_shape& shape) {
  return shape.rows * shape.out_height() * shape.out_width() * shape.filters;
}

/// Calls f(index in x, row of the filter matrix, index in y, filters) for every product of a pixel and a filter tap;
/// filters are contiguous.
template <class F>
void for_each_product(const conv_shape& shape, F f) {
  for (std::int64_t image = 0; image < shape.rows; ++image)
    for (std::int64_t oy = 0; oy < shape.out_height(); ++oy)
      for (std::int64_t ox = 0; ox < shape.out_width(); ++ox)
        for (std::int64_t ty = 0; ty < shape.kernel; ++ty)
          for (std::int64_t tx = 0; tx < shape.kernel; ++tx) {
            const auto y = oy * shape.stride + ty - shape.padding, x = ox * shape.stride + tx - shape.padding;
            if (y < 0 || y >= shape.height || x < 0 || x >= shape.width)
              continue;
            for (std::int64_t c = 0; c < shape.channels; ++c)
              f(((image * shape.height + y) * shape.width + x) * shape.channels + c,
                ((ty * shape.kernel + tx) * shape.channels + c) * shape.filters,
                ((image * shape.out_height() + oy) * shape.out_width() + ox) * shape.filters);
          }
}

/// Fails if a value differs from `expected` by more than the rounding error of its sum.
void check_near(const conv_shape& shape, const char* text, const std::vector<float>& ours,
                const std::vector<double>& expected, std::int64_t terms) {
  REQUIRE(ours.size() == expected.size());
  double worst = 0.0;
  for (std::size_t i = 0; i < ours.size(); ++i) {
    const double difference = std::abs(ours[i] - expected[i]);
    worst = difference <= worst ? worst : (difference == difference ? difference : 1e30);
  }
  if (worst > 2e-7 * (8.0 + static_cast<double>(terms)))
    FAIL(text << " of " << shape.rows << " images " << shape.height << " x " << shape.width << " x " << shape.channels
              << ", " << shape.filters << " filters, kernel " << shape.kernel << ", stride " << shape.stride
              << ", padding " << shape.padding << ": worst difference " << worst);
}

std::vector<double> in_double(const std::vector<float>& values) { return {values.begin(), values.end()}; }

void check_forward(const conv_shape& shape, bool relu, bool biased) {
  const auto x = test::drawn_floats(in_floats(shape), 1), w = test::drawn_floats(shape.terms() * shape.filters, 2),
             bias = test::drawn_floats(shape.filters, 3);
  std::vector<float> y(static_cast<std::size_t>(out_floats(shape)), 7.0F);
  kernels::winograd_convolve(shape, x.data(), w.data(), biased ? bias.data() : nullptr, relu, y.data(), memory);
  std::vector<double> expected(y.size());
  for (std::size_t i = 0; i < y.size() && biased; ++i)
    expected[i] = bias[i % bias.size()];
  for_each_product(shape, [&](std::int64_t from, std::int64_t tap, std::int64_t to) {
    for (std::int64_t f = 0; f < shape.filters; ++f)
      expected[static_cast<std::size_t>(to + f)] +=
          static_cast<double>(x[static_cast<std::size_t>(from)]) * w[static_cast<std::size_t>(tap + f)];
  });
  for (auto& value : expected)
    value = relu ? std::max(value, 0.0) : value;
  check_near(shape, "convolution", y, expected, shape.terms());
}

void check_back(const conv_shape& shape, bool add) {
  const auto dy = test::drawn_floats(out_floats(shape), 1), w = test::drawn_floats(shape.terms() * shape.filters, 2);
  auto dx = test::drawn_floats(in_floats(shape), 3);
  auto expected = add ? in_double(dx) : std::vector<double>(dx.size());
  for_each_product(shape, [&](std::int64_t from, std::int64_t tap, std::int64_t to) {
    for (std::int64_t f = 0; f < shape.filters; ++f)
      expected[static_cast<std::size_t>(from)] +=
          static_cast<double>(dy[static_cast<std::size_t>(to + f)]) * w[static_cast<std::size_t>(tap + f)];
  });
  kernels::winograd_convolve_back(shape, dy.data(), w.data(), dx.data(), add, memory);
  check_near(shape, "gradient of the input", dx, expected, shape.kernel * shape.kernel * shape.filters);
}

void check_correlation(const conv_shape& shape, bool add) {
  const auto x = test::drawn_floats(in_floats(shape), 1), dy = test::drawn_floats(out_floats(shape), 2);
  auto dw = test::drawn_floats(shape.terms() * shape.filters, 3);
  auto expected = add ? in_double(dw) : std::vector<double>(dw.size());
  const float scale = add ? -0.5F : 1.0F;
  for_each_product(shape, [&](std::int64_t from, std::int64_t tap, std::int64_t to) {
    for (std::int64_t f = 0; f < shape.filters; ++f)
      expected[static_cast<std::size_t>(tap + f)] +=
          static_cast<double>(scale) * x[static_cast<std::size_t>(from)] * dy[static_cast<std::size_t>(to + f)];
  });
  kernels::winograd_correlate(shape, x.data(), dy.data(), dw.data(), scale, add, memory);
  check_near(shape, "gradient of the filters", dw, expected, shape.rows * shape.out_height() * shape.out_width());
}

void check_all(const conv_shape& shape) {
  REQUIRE(kernels::winograd_pays(shape));
  check_forward(shape, false, false);
  check_forward(shape, true, true);
  for (const bool add : {false, true}) {
    check_back(shape, add);
    check_correlation(shape, add);
  }
}

} // namespace

TEST_CASE("winograd_pays() is true for 3 x 3 filters with stride 1 over whole vectors of channels", "[kernels]") {
  const conv_shape pays{.rows = 1, .height = 4, .width = 4, .channels = 16, .filters = 32, .kernel = 3, .padding = 1};
  CHECK(kernels::winograd_pays(pays));
  const auto with = [&](std::int64_t conv_shape::*field, std::int64_t value) {
    auto shape = pays;
    shape.*field = value;
    return kernels::winograd_pays(shape);
  };
  CHECK_FALSE(with(&conv_shape::kernel, 5));
  CHECK_FALSE(with(&conv_shape::stride, 2));
  CHECK_FALSE(with(&conv_shape::channels, 3));
  CHECK_FALSE(with(&conv_shape::filters, 6));
  CHECK_FALSE(with(&conv_shape::padding, 0)); // four results
}

TEST_CASE("3 x 3 convolutions over whole vectors of channels and their gradients equal sums in double", "[kernels]") {
  for (std::int64_t padding = 1; padding <= 2; ++padding)
    for (const auto& [channels, filters] : {std::pair<std::int64_t, std::int64_t>{16, 16}, {32, 48}, {64, 16}})
      for (const std::int64_t height : {4, 6, 9})
        for (const std::int64_t rows : {1, 5})
          check_all({.rows = rows,
                     .height = height,
                     .width = 7,
                     .channels = channels,
                     .filters = filters,
                     .kernel = 3,
                     .padding = padding});
}

TEST_CASE("the results of an image have the same bits for any other images in the batch", "[kernels]") {
  const conv_shape many{.rows = 13, .height = 7, .width = 6, .channels = 32, .filters = 32, .kernel = 3, .padding = 1};
  auto shape = many;
  shape.rows = 1;
  const auto x = test::drawn_floats(in_floats(many), 1), w = test::drawn_floats(many.terms() * many.filters, 2);
  const auto dy = test::drawn_floats(out_floats(many), 3);
  std::vector<float> y(static_cast<std::size_t>(out_floats(many))), dx(static_cast<std::size_t>(in_floats(many)));
  kernels::winograd_convolve(many, x.data(), w.data(), nullptr, false, y.data(), memory);
  kernels::winograd_convolve_back(many, dy.data(), w.data(), dx.data(), false, memory);
  for (std::int64_t image = 0; image < many.rows; ++image) {
    const auto in = image * in_floats(shape), out = image * out_floats(shape);
    std::vector<float> own_y(static_cast<std::size_t>(out_floats(shape)));
    std::vector<float> own_dx(static_cast<std::size_t>(in_floats(shape)));
    kernels::winograd_convolve(shape, x.data() + in, w.data(), nullptr, false, own_y.data(), memory);
    kernels::winograd_convolve_back(shape, dy.data() + out, w.data(), own_dx.data(), false, memory);
    CHECK(std::memcmp(own_y.data(), y.data() + out, own_y.size() * sizeof(float)) == 0);
    CHECK(std::memcmp(own_dx.data(), dx.data() + in, own_dx.size() * sizeof(float)) == 0);
  }
}

TEST_CASE("a NaN reaches all results that read it and no other image, with and without ReLU", "[kernels]") {
  for (const bool relu : {false, true}) {
    const conv_shape shape{.rows = 2, .height = 6, .width = 6, .channels = 16, .filters = 16, .kernel = 3};
    auto x = test::drawn_floats(in_floats(shape), 1);
    x[0] = NAN;
    const auto w = test::drawn_floats(shape.terms() * shape.filters, 2);
    std::vector<float> y(static_cast<std::size_t>(out_floats(shape)));
    kernels::winograd_convolve(shape, x.data(), w.data(), nullptr, relu, y.data(), memory);
    const auto nan = [](float value) { return std::isnan(value); };
    const auto first = y.begin(), second = y.begin() + std::ssize(y) / 2;
    CHECK(std::all_of(first, first + shape.filters, nan)); // of the patch in the corner
    CHECK(std::none_of(second, y.end(), nan));
  }
}
