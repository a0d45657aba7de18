#include "runtime/data/picture_bytes.hpp"
#include "runtime/base/disk_file.hpp"
#include <fmt/format.h>
namespace mneme {

expected<std::vector<std::uint8_t>> picture_bytes(const std::filesystem::path& path) {
  constexpr std::uint64_t file_bytes_max = std::uint64_t{1} << 28U;
  auto file = disk_file::open(path);
  if (!file)
    return tl::unexpected(file.error());
  if (file->size_bytes() > file_bytes_max)
    return failed(path.string(), fmt::format("the file has {} bytes, but a picture of a data set has at most {}",
                                             file->size_bytes(), file_bytes_max));
  std::vector<std::uint8_t> bytes(file->size_bytes());
  const auto got = file->read(bytes);
  if (!got)
    return tl::unexpected(got.error());
  bytes.resize(*got);
  return bytes;
}

} // namespace mneme
