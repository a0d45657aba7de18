#include "runtime/base/atomic_file.hpp"
#include "runtime/base/check.hpp"
#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <utility>
namespace mneme {
namespace {

[[noreturn]] void fail(const char* act, const std::filesystem::path& path, int error) {
  throw std::system_error(error, std::generic_category(), std::string("cannot ") + act + " '" + path.string() + "'");
}

std::filesystem::path part_of(const std::filesystem::path& path) {
  auto part = path;
  part += ".part";
  return part;
}

/// Makes a rename inside `folder` last. File systems that cannot sync folders are skipped.
void sync_folder(const std::filesystem::path& folder) {
  const int descriptor = ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0)
    return;
  ::fsync(descriptor);
  ::close(descriptor);
}

} // namespace

open_file::open_file(std::filesystem::path path, int flags) : path_(std::move(path)) {
  descriptor_ = ::open(path_.c_str(), flags | O_CLOEXEC, 0666);
  if (descriptor_ < 0)
    fail("open", path_, errno);
}

open_file::open_file(open_file&& other) noexcept
    : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)) {}

open_file& open_file::operator=(open_file&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

open_file::~open_file() {
  if (descriptor_ >= 0)
    ::close(descriptor_);
}

void open_file::write(std::string_view bytes) {
  MNEME_CHECK(descriptor_ >= 0, path_);
  while (!bytes.empty()) {
    const auto written = ::write(descriptor_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR)
      continue;
    if (written < 0)
      fail("write", path_, errno);
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
}

void open_file::sync() {
  // EINVAL: a file system, or a device, without anything to sync
  if (::fsync(descriptor_) != 0 && errno != EINVAL)
    fail("write", path_, errno);
}

void open_file::close() {
  const int descriptor = std::exchange(descriptor_, -1);
  if (::close(descriptor) != 0 && errno != EINTR)
    fail("write", path_, errno);
}

atomic_file::atomic_file(std::filesystem::path path)
    : path_(std::move(path)), part_(part_of(path_), O_WRONLY | O_CREAT | O_TRUNC) {}

atomic_file::~atomic_file() {
  if (!committed_)
    ::unlink(part_.path().c_str());
}

void atomic_file::commit() {
  MNEME_CHECK(!committed_, path_);
  part_.sync();
  part_.close();
  if (::rename(part_.path().c_str(), path_.c_str()) != 0)
    fail("write", path_, errno);
  committed_ = true;
  sync_folder(path_.parent_path());
}

void write_atomically(const std::filesystem::path& path, std::string_view content) {
  atomic_file file(path);
  file.write(content);
  file.commit();
}

line_file::line_file(std::filesystem::path path) : file_(std::move(path), O_WRONLY | O_CREAT | O_APPEND) {}

void line_file::append(std::string_view lines) {
  struct stat before {};
  if (::fstat(file_.descriptor(), &before) != 0)
    fail("measure", file_.path(), errno);
  if (before.st_nlink == 0)
    fail("write", file_.path(), ENOENT);
  try {
    file_.write(lines);
  } catch (const std::system_error&) {
    [[maybe_unused]] const int as_it_was = ::ftruncate(file_.descriptor(), before.st_size);
    throw;
  }
}

std::uint64_t line_file::settled() {
  file_.sync();
  struct stat now {};
  if (::fstat(file_.descriptor(), &now) != 0)
    fail("measure", file_.path(), errno);
  return static_cast<std::uint64_t>(now.st_size);
}

} // namespace mneme
