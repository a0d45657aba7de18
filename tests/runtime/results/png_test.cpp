#include "runtime/results/png.hpp"
#include <ATen/ops/arange.h>
#include <ATen/ops/tensor.h>
#include <catch2/catch_test_macros.hpp>
#include <zlib.h>
using namespace mneme;

namespace {

std::uint32_t word_at(const std::string& bytes, std::size_t at) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i)
    value = value << 8U | static_cast<std::uint8_t>(bytes[at + i]);
  return value;
}

/// Names and contents of the chunks; checks their checksums.
std::vector<std::pair<std::string, std::string>> chunks_of(const std::string& bytes) {
  std::vector<std::pair<std::string, std::string>> chunks;
  for (std::size_t at = 8; at < bytes.size();) {
    const auto size = word_at(bytes, at);
    const auto body = bytes.substr(at + 4, 4 + size);
    CHECK(word_at(bytes, at + 8 + size) ==
          crc32(0, reinterpret_cast<const Bytef*>(body.data()), static_cast<uInt>(body.size())));
    chunks.emplace_back(body.substr(0, 4), body.substr(4));
    at += 12 + size;
  }
  return chunks;
}

std::string inflated(const std::string& packed, std::size_t size) {
  std::string plain(size, '\0');
  uLongf found = size;
  REQUIRE(uncompress(reinterpret_cast<Bytef*>(plain.data()), &found, reinterpret_cast<const Bytef*>(packed.data()),
                     packed.size()) == Z_OK);
  REQUIRE(found == size);
  return plain;
}

} // namespace

TEST_CASE("a picture is a PNG file of its pixels, line by line") {
  const auto grey = at::arange(6, at::kByte).view({1, 2, 3});
  const auto bytes = png_bytes(grey);
  CHECK(bytes.substr(0, 8) == "\x89PNG\r\n\x1a\n");
  const auto chunks = chunks_of(bytes);
  REQUIRE(chunks.size() == 3);
  CHECK(chunks[0].first == "IHDR");
  CHECK(chunks[0].second == std::string{0, 0, 0, 3, 0, 0, 0, 2, 8, 0, 0, 0, 0});
  CHECK(chunks[1].first == "IDAT");
  CHECK(inflated(chunks[1].second, 8) == std::string{0, 0, 1, 2, 0, 3, 4, 5});
  CHECK(chunks[2] == std::pair<std::string, std::string>{"IEND", ""});
}

TEST_CASE("colours lie pixel by pixel, wherever the tensor has them") {
  const auto colour = at::tensor({1, 2, 3, 4, 5, 6}, at::kByte).view({2, 3}).t().contiguous().view({3, 2, 1});
  const auto chunks = chunks_of(png_bytes(colour));
  CHECK(chunks[0].second == std::string{0, 0, 0, 1, 0, 0, 0, 2, 8, 2, 0, 0, 0});
  CHECK(inflated(chunks[1].second, 8) == std::string{0, 1, 2, 3, 0, 4, 5, 6});
}
