#include "runtime/kernels/dropout.hpp"
#include <catch2/catch_test_macros.hpp>
#include <vector>
using namespace mneme;

/// Numbers with `Bits` bits of a stream in mask order: the first words of 16 blocks, then the second words, and so on.
template <class Bits>
std::vector<std::uint32_t> numbers_of(const rng_key& key, std::size_t n) {
  std::vector<std::uint32_t> numbers;
  for (rng_stream stream(key); numbers.size() < n;) {
    std::uint32_t words[4][16];
    for (int block = 0; block < 16; ++block)
      for (auto& word : words)
        word[block] = stream.bits32();
    for (const auto& word : words)
      for (const auto bits : word)
        for (std::size_t part = 0; part < 4 / sizeof(Bits); ++part)
          numbers.push_back(static_cast<Bits>(bits >> (8 * sizeof(Bits) * part)));
  }
  return numbers;
}

TEST_CASE("a dropout mask uses as many bits of its stream per value as its rate needs", "[kernels]") {
  const rng_key key{.seed = 3, .purpose = first_method_purpose, .client = {2}, .index = 5};
  for (const std::uint32_t drop_below : {0U, 1U << 14U, 3U << 14U, 6554U, 65535U})
    for (const std::size_t n : {1, 3, 64, 127, 128, 129, 255, 256, 257, 1000}) {
      const bool bytes = drop_below % 256 == 0;
      const auto numbers = bytes ? numbers_of<std::uint8_t>(key, n) : numbers_of<std::uint16_t>(key, n);
      std::vector<std::uint8_t> mask(n + 1, 7), expected;
      kernels::draw_dropout_mask(stream_name_of(key), drop_below, mask.data(), static_cast<std::int64_t>(n));
      for (std::size_t i = 0; i < n; ++i)
        expected.push_back(numbers[i] >= (bytes ? drop_below / 256 : drop_below));
      expected.push_back(7); // bytes after the end are not changed
      INFO(n << " values, dropped below " << drop_below);
      CHECK((mask == expected));
    }
}

TEST_CASE("a dropout mask scales values or sets them to 0", "[kernels]") {
  std::vector<float> in, out(37, 7.0F);
  std::vector<std::uint8_t> mask;
  for (int i = 0; i < 37; ++i) {
    in.push_back(static_cast<float>(i - 18));
    mask.push_back(i % 3 == 0);
  }
  kernels::apply_dropout_mask(in.data(), mask.data(), 1.5F, out.data(), 37);
  for (std::size_t i = 0; i < out.size(); ++i)
    CHECK(out[i] == (i % 3 == 0 ? 1.5F * in[i] : 0.0F));
}
