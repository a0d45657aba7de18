/// data_files: small data files written by tests, valid or damaged, and the diagnostics of loaders.
#pragma once
#include "runtime/base/diagnostic.hpp"
#include "tests/support/scratch.hpp"
#include <catch2/catch_test_macros.hpp>
#include <cstdint>
#include <lzma.h>
#include <string>
#include <vector>
#include <zlib.h>
namespace mneme::test {

/// Bytes of a four-byte big-endian integer.
inline std::string big_endian(std::uint32_t number) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8)
    bytes += static_cast<char>(number >> shift & 0xFF);
  return bytes;
}

/// Content of an idx1 file. @param stated number of rows in the header, which may be wrong
inline std::string idx_labels(const std::string& labels, std::uint32_t stated) {
  return big_endian(0x801) + big_endian(stated) + labels;
}
inline std::string idx_labels(const std::string& labels) {
  return idx_labels(labels, static_cast<std::uint32_t>(labels.size()));
}

/// Content of an idx3 file of `rows` images; all pixels of image i have the value i. @param stated number of images in
/// the header
inline std::string idx_images(std::uint32_t rows, std::uint32_t side, std::uint32_t stated) {
  auto file = big_endian(0x803) + big_endian(stated) + big_endian(side) + big_endian(side);
  for (std::uint32_t row = 0; row < rows; ++row)
    file += std::string(side * side, static_cast<char>(row));
  return file;
}
inline std::string idx_images(std::uint32_t rows, std::uint32_t side) { return idx_images(rows, side, rows); }

/// Bytes of a CIFAR record: `before`, then 3072 pixels of equal value.
inline std::string record(const std::string& before, int pixel) {
  return before + std::string(3072, static_cast<char>(pixel));
}

inline std::string gzipped(const std::string& content) {
  z_stream stream{};
  REQUIRE(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK);
  std::string packed(deflateBound(&stream, content.size()) + 64, '\0');
  auto input = content;
  stream.next_in = reinterpret_cast<Bytef*>(input.data());
  stream.avail_in = static_cast<uInt>(input.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  REQUIRE(deflate(&stream, Z_FINISH) == Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

inline std::string xzipped(const std::string& content) {
  std::string packed(lzma_stream_buffer_bound(content.size()), '\0');
  std::size_t bytes = 0;
  REQUIRE(lzma_easy_buffer_encode(6, LZMA_CHECK_CRC64, nullptr, reinterpret_cast<const std::uint8_t*>(content.data()),
                                  content.size(), reinterpret_cast<std::uint8_t*>(packed.data()), &bytes,
                                  packed.size()) == LZMA_OK);
  packed.resize(bytes);
  return packed;
}

/// Errors of a failed result, one per line; "" for a success.
template <class T>
std::string error_text(const expected<T>& result) {
  std::string text;
  if (!result)
    for (const auto& problem : result.error())
      text += diagnostic_text(problem) + "\n";
  return text;
}

} // namespace mneme::test
