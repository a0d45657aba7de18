#include "runtime/base/rng.hpp"
#include "runtime/kernels/pooling.hpp"
#include <catch2/catch_test_macros.hpp>
#include <vector>
using namespace mneme;

TEST_CASE("mean pooling averages over an image's pixels", "[kernels]") {
  for (const std::int64_t channels : {1, 7, 16, 40}) {
    const std::int64_t rows = 3, pixels = 15;
    std::vector<float> x(static_cast<std::size_t>(rows * pixels * channels));
    rng_stream draw({.seed = 1, .purpose = first_method_purpose});
    for (auto& value : x)
      value = static_cast<float>(draw.normal());
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
