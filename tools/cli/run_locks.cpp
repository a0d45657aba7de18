#include "tools/cli/run_locks.hpp"
#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
namespace mneme {
namespace {

/// Offset of a run's lock byte. Two runs with the same offset do not run concurrently.
off_t byte_of(const std::string& digest) {
  constexpr std::size_t digits = 15; // 60 bits, the range of an offset
  return static_cast<off_t>(std::strtoull(digest.substr(0, digits).c_str(), nullptr, 16));
}

/// Sets an open file description lock, which forked children share with their parent.
int set_lock(const open_file& file, const std::string& digest, short kind) {
  struct flock byte {};
  byte.l_type = kind;
  byte.l_whence = SEEK_SET;
  byte.l_start = byte_of(digest);
  byte.l_len = 1;
  return ::fcntl(file.descriptor(), F_OFD_SETLK, &byte);
}

} // namespace

run_locks::run_locks(const std::filesystem::path& folder)
    : file_(folder / file_name, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK) {}

bool run_locks::acquire(const std::string& digest) {
  return set_lock(file_, digest, F_WRLCK) == 0 || (errno != EAGAIN && errno != EACCES);
}

void run_locks::release(const std::string& digest) { set_lock(file_, digest, F_UNLCK); }

} // namespace mneme
