#include "runtime/base/disk_file.hpp"
#include <cerrno>
#include <fmt/format.h>
#include <system_error>
namespace mneme {
namespace {

std::string words(int error) { return std::generic_category().message(error); }

} // namespace

expected<disk_file> disk_file::open(const std::filesystem::path& path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (error)
    return failed(path.string(), fmt::format("cannot be read: {}", error.message()));
  if (!std::filesystem::is_regular_file(status))
    return failed(path.string(), fmt::format("is {}, but a data file was expected: move it away and put the file there",
                                             std::filesystem::is_directory(status) ? "a folder" : "no ordinary file"));
  disk_file opened;
  opened.path_ = path;
  opened.size_bytes_ = std::filesystem::file_size(path, error);
  if (error)
    return failed(path.string(), fmt::format("cannot be read: {}", error.message()));
  if (opened.size_bytes_ == 0)
    return failed(opened.place(0), "the file is empty: fetch it again");
  opened.file_.reset(std::fopen(path.c_str(), "rb"));
  if (!opened.file_)
    return failed(path.string(), fmt::format("cannot be opened: {}; check its permissions", words(errno)));
  return opened;
}

expected<std::size_t> disk_file::read(std::span<std::uint8_t> out) {
  errno = 0;
  const auto bytes = std::fread(out.data(), 1, out.size(), file_.get());
  position_ += bytes;
  if (bytes < out.size() && std::ferror(file_.get()))
    return failed(place(position_), fmt::format("cannot be read: {}", words(errno)));
  return bytes;
}

expected<void> disk_file::seek(std::uint64_t byte) {
  if (::fseeko(file_.get(), static_cast<off_t>(byte), SEEK_SET) != 0)
    return failed(place(byte), fmt::format("cannot be reached: {}", words(errno)));
  position_ = byte;
  return {};
}

std::string disk_file::place(std::uint64_t byte) const { return fmt::format("{}: byte {}", path_.string(), byte); }

expected<std::string> text_of_file(const std::filesystem::path& path, std::uint64_t bytes_max) {
  auto file = disk_file::open(path);
  if (!file)
    return tl::unexpected(file.error());
  if (file->size_bytes() > bytes_max)
    return failed(path.string(),
                  fmt::format("the file has {} bytes, but one like it has at most {}", file->size_bytes(), bytes_max));
  std::string text(file->size_bytes(), '\0');
  const auto bytes = file->read({reinterpret_cast<std::uint8_t*>(text.data()), text.size()});
  if (!bytes)
    return tl::unexpected(bytes.error());
  text.resize(*bytes);
  return text;
}

} // namespace mneme
