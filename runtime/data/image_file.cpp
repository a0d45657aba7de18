#include "runtime/data/image_file.hpp"
#include "runtime/base/disk_file.hpp"
#include "runtime/data/image_format.hpp"
#include "runtime/data/jpeg.hpp"
#include "runtime/data/png_reader.hpp"
#include <algorithm>
#include <fmt/format.h>
namespace mneme {
namespace {

using std::filesystem::path;

/// Reads at most `bytes_max` bytes from the start of the file.
expected<std::vector<std::uint8_t>> read_bytes(disk_file file, std::uint64_t bytes_max) {
  std::vector<std::uint8_t> bytes(std::min(file.size_bytes(), bytes_max));
  const auto count = file.read(bytes);
  if (!count)
    return tl::unexpected(count.error());
  bytes.resize(*count);
  return bytes;
}

} // namespace

expected<at::Tensor> read_image(const path& file, std::int64_t pixels_max) {
  constexpr std::uint64_t file_bytes_max = std::uint64_t{1} << 28U;
  auto opened = disk_file::open(file);
  if (!opened)
    return tl::unexpected(opened.error());
  if (opened->size_bytes() > file_bytes_max)
    return failed(file.string(), fmt::format("the file has {} bytes, but an image of a data set has at most {}",
                                             opened->size_bytes(), file_bytes_max));
  auto bytes = read_bytes(std::move(*opened), file_bytes_max);
  if (!bytes)
    return tl::unexpected(bytes.error());
  switch (detect_image_format(*bytes)) {
  case image_format::png:
    return decode_png(std::move(*bytes), file, pixels_max);
  case image_format::jpeg:
    return decode_jpeg(*bytes, file, pixels_max);
  case image_format::unsupported:
    break;
  }
  return failed(file.string(), fmt::format("is {}; expected PNG or JPEG: convert the image, or fetch it again",
                                           describe_content(*bytes)));
}

std::string unsupported_format(const path& file) {
  auto opened = disk_file::open(file);
  if (!opened)
    return {};
  const auto bytes = read_bytes(std::move(*opened), format_bytes);
  if (!bytes || detect_image_format(*bytes) != image_format::unsupported)
    return {};
  return describe_content(*bytes);
}

} // namespace mneme
