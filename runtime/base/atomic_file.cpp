#include "runtime/base/atomic_file.hpp"
#include "runtime/base/check.hpp"
#include <cerrno>
#include <fcntl.h>
#include <sys/file.h>
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

/// Makes renames inside `folder` durable. Does nothing on file systems that cannot sync folders.
void sync_folder(const std::filesystem::path& folder) {
  const int descriptor = ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0)
    return;
  ::fsync(descriptor);
  ::close(descriptor);
}

/// The kind of a non-regular file, such as "a folder". Returns "" for a regular file and for a missing one.
std::string other_kind_of(const std::filesystem::path& path) {
  struct stat there {};
  if (::lstat(path.c_str(), &there) != 0)
    return {};
  switch (there.st_mode & S_IFMT) {
  case S_IFREG:
    return {};
  case S_IFLNK:
    return "a link";
  case S_IFDIR:
    return "a folder";
  case S_IFIFO:
    return "a pipe";
  case S_IFSOCK:
    return "a socket";
  default:
    return "a device";
  }
}

/// Throws if the path exists and is not a regular file, because replacing it could harm other programs.
void expect_ordinary(const std::filesystem::path& path) {
  if (const auto kind = other_kind_of(path); !kind.empty())
    throw std::system_error(std::make_error_code(std::errc::operation_not_permitted),
                            "cannot write '" + path.string() + "', which is " + kind +
                                ", not an ordinary file; choose another name, or move it away");
}

/// Flags that reject symbolic links and do not block on a pipe without a reader.
constexpr int own_file_flags = O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;

/// True if the file's path still refers to the open file.
bool is_named(const open_file& file) {
  struct stat held {
  }, there{};
  return ::fstat(file.descriptor(), &held) == 0 && ::lstat(file.path().c_str(), &there) == 0 &&
         held.st_dev == there.st_dev && held.st_ino == there.st_ino;
}

/// Opens and locks an empty part file. Writers of the same file wait for each other, except on file systems without
/// locks.
open_file own_part(const std::filesystem::path& path) {
  expect_ordinary(path);
  const auto name = part_of(path);
  expect_ordinary(name);
  for (;;) {
    open_file part(name, O_WRONLY | O_CREAT | own_file_flags);
    while (::flock(part.descriptor(), LOCK_EX) != 0 && errno == EINTR)
      ;
    if (!is_named(part)) // the previous writer has renamed this part
      continue;
    if (::ftruncate(part.descriptor(), 0) == 0)
      return part;
    const int error = errno;
    ::unlink(name.c_str()); // else the empty part file would remain
    fail("write", name, error);
  }
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
  // EINVAL: the file system or device does not support fsync
  if (::fsync(descriptor_) != 0 && errno != EINVAL)
    fail("write", path_, errno);
}

void open_file::close() {
  const int descriptor = std::exchange(descriptor_, -1);
  if (::close(descriptor) != 0 && errno != EINTR)
    fail("write", path_, errno);
}

atomic_file::atomic_file(std::filesystem::path path) : path_(std::move(path)), part_(own_part(path_)) {}

atomic_file::~atomic_file() {
  if (!committed_ && is_named(part_))
    ::unlink(part_.path().c_str());
}

void atomic_file::commit() {
  MNEME_CHECK(!committed_, path_);
  part_.sync();
  expect_ordinary(path_);
  if (!is_named(part_)) // the part file was moved or removed, so its name may belong to another file
    fail("write", part_.path(), ENOENT);
  if (::rename(part_.path().c_str(), path_.c_str()) != 0)
    fail("write", path_, errno);
  committed_ = true;
  part_.close(); // this releases the lock
  sync_folder(path_.parent_path());
}

void write_atomically(const std::filesystem::path& path, std::string_view content) {
  atomic_file file(path);
  file.write(content);
  file.commit();
}

line_file::line_file(std::filesystem::path path)
    : file_((expect_ordinary(path), std::move(path)), O_WRONLY | O_CREAT | O_APPEND | own_file_flags) {}

void line_file::append(std::string_view lines) {
  struct stat before {};
  if (::fstat(file_.descriptor(), &before) != 0)
    fail("measure", file_.path(), errno);
  if (!is_named(file_))
    fail("write", file_.path(), ENOENT);
  try {
    file_.write(lines);
  } catch (const std::system_error&) {
    [[maybe_unused]] const int as_it_was = ::ftruncate(file_.descriptor(), before.st_size);
    throw;
  }
}

std::uint64_t line_file::sync_and_size() {
  file_.sync();
  struct stat now {};
  if (::fstat(file_.descriptor(), &now) != 0)
    fail("measure", file_.path(), errno);
  return static_cast<std::uint64_t>(now.st_size);
}

} // namespace mneme
