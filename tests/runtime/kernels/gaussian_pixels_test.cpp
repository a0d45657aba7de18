#include "runtime/kernels/gaussian_pixels.hpp"
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
using namespace mneme;

namespace {

rng_key key_of(std::uint64_t index) { return key_for({.seed = 7, .index = index}, purpose::synthetic_data); }

/// Reference: one normal draw at a time.
std::vector<std::uint8_t> plain(const std::vector<float>& mean, const rng_key& key) {
  rng_stream stream(key);
  std::vector<std::uint8_t> pixels;
  for (const float m : mean)
    pixels.push_back(
        static_cast<std::uint8_t>(std::clamp(std::floor(128.5 + 32.0 * (m + stream.normal())), 0.0, 255.0)));
  return pixels;
}

} // namespace

TEST_CASE("stacked pixels equal pixels computed one by one, for any number of them") {
  int certain = 0, rows = 0;
  for (const std::size_t n : {1, 2, 3, 31, 32, 33, 64, 147, 3072})
    for (std::uint64_t row = 0; row < 50; ++row, ++rows) {
      std::vector<float> mean(n);
      for (std::size_t i = 0; i < n; ++i)
        mean[i] = 0.37F * static_cast<float>((i + row) % 23) - 4.0F; // some pixels are clamped to 0 or 255
      std::vector<std::uint8_t> pixels(n + 1, 77);
      if (!kernels::gaussian_pixels({pixels.data(), n}, mean.data(), stream_name_of(key_of(row))))
        continue;
      ++certain;
      CHECK(pixels.back() == 77);
      pixels.pop_back();
      CHECK(pixels == plain(mean, key_of(row)));
    }
  CHECK(certain > rows * 9 / 10);
}

TEST_CASE("a value next to an integer is recomputed exactly") {
  constexpr std::size_t n = 1000;
  rng_stream stream(key_of(1));
  std::vector<float> mean(n);
  for (float& m : mean)
    m = static_cast<float>((100.0 - 128.5) / 32.0 - stream.normal()); // 128.5 + 32 (m + z) = 100 up to rounding
  std::vector<std::uint8_t> pixels(n);
  CHECK_FALSE(kernels::gaussian_pixels(pixels, mean.data(), stream_name_of(key_of(1))));
}
