#include "tools/cli/svg_to_png.hpp"
#include "runtime/base/atomic_file.hpp"
#include <algorithm>
#include <array>
#include <cerrno>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <system_error>
#include <unistd.h>
namespace mneme {
namespace {

// The program takes 30 ms per image. As a linked library, librsvg would add 49 libraries and 4.5 ms of CPU time to
// every start of mneme.
constexpr const char* converter = "rsvg-convert";

/// File in memory, used as stdin, stdout or stderr of the child process.
class memory_file {
public:
  memory_file() : descriptor_(::memfd_create("png", MFD_CLOEXEC)) {
    if (descriptor_ < 0)
      throw std::system_error(errno, std::generic_category(), "cannot create an in-memory file for an image");
  }
  memory_file(const memory_file&) = delete;
  memory_file& operator=(const memory_file&) = delete;
  ~memory_file() { ::close(descriptor_); }

  [[nodiscard]] int descriptor() const { return descriptor_; }
  void fill(std::string_view bytes) const {
    if (::pwrite(descriptor_, bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
      throw std::system_error(errno, std::generic_category(), "cannot create an in-memory file for an image");
  }
  [[nodiscard]] std::string content() const {
    std::string bytes(static_cast<std::size_t>(::lseek(descriptor_, 0, SEEK_END)), '\0');
    bytes.resize(static_cast<std::size_t>(std::max<ssize_t>(0, ::pread(descriptor_, bytes.data(), bytes.size(), 0))));
    return bytes;
  }

private:
  int descriptor_;
};

/// Runs the converter. Returns its exit code, or the negative errno if it could not be started.
int converted(const memory_file& in, const memory_file& out, const memory_file& errors) {
  std::array<const char*, 4> words{converter, "--zoom=2", "--format=png", nullptr};
  posix_spawn_file_actions_t files;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawn_file_actions_adddup2(&files, in.descriptor(), STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&files, out.descriptor(), STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&files, errors.descriptor(), STDERR_FILENO);
  pid_t child = 0;
  const int reason =
      ::posix_spawnp(&child, converter, &files, nullptr, const_cast<char* const*>(words.data()), environ);
  ::posix_spawn_file_actions_destroy(&files);
  if (reason != 0)
    return -reason;
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR)
    continue;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

} // namespace

expected<void> write_png(const std::filesystem::path& file, std::string_view svg) {
  const memory_file in, out, errors;
  in.fill(svg);
  const int code = converted(in, out, errors);
  if (code == -ENOENT)
    return failed("--png", std::string("found no ") + converter +
                               " in $PATH; install Debian's librsvg2-bin (tools/bootstrap does)");
  if (code < 0)
    throw std::system_error(-code, std::generic_category(), converter);
  const auto png = out.content();
  if (code != 0 || png.empty())
    return failed(file.string(), std::string(converter) + " cannot convert it: " + errors.content());
  write_atomically(file, png);
  return {};
}

} // namespace mneme
