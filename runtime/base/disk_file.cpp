#include "runtime/base/disk_file.hpp"
#include <cerrno>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
namespace mneme {
namespace {

std::string words(int error) { return std::generic_category().message(error); }

/// Name of a non-regular file's kind; "" for a regular file.
std::string kind_of(mode_t mode) {
  if (S_ISREG(mode))
    return {};
  return S_ISDIR(mode) ? "a folder" : S_ISFIFO(mode) ? "a named pipe" : S_ISSOCK(mode) ? "a socket" : "a device";
}

using owned_file = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

struct opened_file {
  owned_file file{nullptr, &std::fclose};
  std::uint64_t size_bytes = 0;
};

/// Opens a regular file. The error is the predicate of a sentence. The kind is checked before opening, because opening
/// a device can have side effects. It is checked again afterwards, because the path may then refer to another file.
tl::expected<opened_file, std::string> open_ordinary(const std::filesystem::path& path) {
  struct stat facts {};
  const auto refused = [](const std::string& text) { return tl::unexpected<std::string>(text); };
  if (::stat(path.c_str(), &facts) != 0)
    return refused("cannot be read: " + words(errno));
  if (const auto kind = kind_of(facts.st_mode); !kind.empty())
    return refused("is " + kind + "; expected an ordinary file");
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  if (descriptor < 0)
    return refused("cannot be opened: " + words(errno) + "; check its permissions");
  opened_file opened;
  opened.file.reset(::fdopen(descriptor, "rb"));
  if (!opened.file || ::fstat(descriptor, &facts) != 0)
    return refused("cannot be opened: " + words(errno));
  if (const auto kind = kind_of(facts.st_mode); !kind.empty())
    return refused("is " + kind + "; expected an ordinary file");
  opened.size_bytes = static_cast<std::uint64_t>(facts.st_size);
  return opened;
}

std::string too_large_text(std::uint64_t bytes, std::uint64_t bytes_max) {
  return fmt::format("has {} bytes; expected at most {}", bytes, bytes_max);
}

} // namespace

expected<disk_file> disk_file::open(const std::filesystem::path& path) {
  auto file = open_ordinary(path);
  if (!file)
    return failed(path.string(), file.error());
  disk_file opened;
  opened.path_ = path;
  opened.size_bytes_ = file->size_bytes;
  if (opened.size_bytes_ == 0)
    return failed(opened.place(0), "the file is empty: fetch it again");
  opened.file_.reset(file->file.release());
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

std::string special_kind(const std::filesystem::path& path) {
  struct stat facts {};
  return ::stat(path.c_str(), &facts) == 0 ? kind_of(facts.st_mode) : "";
}

std::string unreadable_text(const std::filesystem::path& path, std::uint64_t bytes_max) {
  const auto file = open_ordinary(path);
  if (!file)
    return file.error();
  return file->size_bytes > bytes_max ? too_large_text(file->size_bytes, bytes_max) : "";
}

tl::expected<std::ifstream, std::string> open_stream(const std::filesystem::path& path) {
  if (auto text = unreadable_text(path); !text.empty())
    return tl::unexpected(std::move(text));
  std::ifstream stream(path, std::ios::binary);
  if (!stream)
    return tl::unexpected("cannot be opened: " + words(errno));
  return stream;
}

expected<std::string> text_of_file(const std::filesystem::path& path, std::uint64_t bytes_max) {
  auto file = disk_file::open(path);
  if (!file)
    return tl::unexpected(file.error());
  if (file->size_bytes() > bytes_max)
    return failed(path.string(), too_large_text(file->size_bytes(), bytes_max));
  std::string text(file->size_bytes(), '\0');
  const auto bytes = file->read({reinterpret_cast<std::uint8_t*>(text.data()), text.size()});
  if (!bytes)
    return tl::unexpected(bytes.error());
  text.resize(*bytes);
  return text;
}

} // namespace mneme
