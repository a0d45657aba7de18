#include "runtime/kernels/dropout.hpp"
#include <catch2/catch_test_macros.hpp>
#include <vector>
using namespace mneme;

TEST_CASE("a mask follows the words of its stream, however many there are", "[kernels]") {
  const rng_key key{.seed = 3, .what = first_method_purpose, .client = {2}, .index = 5};
  for (const std::uint32_t drop_below : {0U, 1U << 30U, 3U << 30U})
    for (const std::size_t n : {1, 3, 4, 63, 64, 65, 1000}) {
      std::vector<std::uint8_t> mask(n + 1, 7), expected;
      kernels::draw_mask(name_of(key), drop_below, mask.data(), static_cast<std::int64_t>(n));
      rng_stream stream(key);
      for (std::size_t i = 0; i < n; ++i)
        expected.push_back(stream.bits32() >= drop_below);
      expected.push_back(7); // what lies behind is not touched
      INFO(n << " values, dropped below " << drop_below);
      CHECK((mask == expected));
    }
}

TEST_CASE("a mask lets through and scales, or sets to zero", "[kernels]") {
  std::vector<float> in, out(37, 7.0F);
  std::vector<std::uint8_t> mask;
  for (int i = 0; i < 37; ++i) {
    in.push_back(static_cast<float>(i - 18));
    mask.push_back(i % 3 == 0);
  }
  kernels::apply_mask(in.data(), mask.data(), 1.5F, out.data(), 37);
  for (std::size_t i = 0; i < out.size(); ++i)
    CHECK(out[i] == (i % 3 == 0 ? 1.5F * in[i] : 0.0F));
}
