#include "runtime/modules/sandbox_start.hpp"
#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <iterator>
#include <linux/close_range.h>
#include <spawn.h>
#include <string_view>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
namespace mneme {
namespace {

/// Creates an anonymous in-memory file with these bytes, positioned at its start. Returns -1 with errno on failure.
int nameless_file(std::span<const std::uint8_t> bytes) {
  const int file = ::memfd_create("module", MFD_CLOEXEC);
  std::size_t written = 0;
  while (file >= 0 && written < bytes.size()) {
    const auto count = ::write(file, bytes.data() + written, bytes.size() - written);
    if (count < 0 && errno == EINTR)
      continue;
    if (count <= 0) {
      const int reason = errno;
      ::close(file);
      errno = reason;
      return -1;
    }
    written += static_cast<std::size_t>(count);
  }
  if (file >= 0)
    ::lseek(file, 0, SEEK_SET);
  return file;
}

std::vector<std::string> words_for(const std::filesystem::path& program, const sandbox_request& question) {
  std::vector<std::string> words{program.string(), sandbox_argument};
  for (const auto number :
       {question.input[0], question.input[1], question.input[2], static_cast<std::int64_t>(question.form),
        question.tokens, static_cast<std::int64_t>(question.own_rows), static_cast<std::int64_t>(question.trained),
        static_cast<std::int64_t>(question.training), question.seconds, question.memory_bytes})
    words.push_back(std::to_string(number));
  return words;
}

/// Environment of a sandbox process. It contains only variables that select libraries and their arithmetic, so no
/// secrets.
std::vector<std::string> environment_of_cell() {
  std::vector<std::string> variables{"OMP_NUM_THREADS=1"};
  for (const char* const* variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text(*variable);
    for (const auto* const taken :
         {"LD_LIBRARY_PATH=", "ATEN_CPU_", "ONEDNN_", "DNNL_", "MKL_", "GLIBC_TUNABLES=", "MNEME_ARITHMETIC="})
      if (text.starts_with(taken))
        variables.emplace_back(text);
  }
  return variables;
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (auto& text : texts)
    pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

pid_t spawned(std::vector<std::string> words, int input, int output) {
  auto variables = environment_of_cell();
  posix_spawn_file_actions_t files;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawn_file_actions_adddup2(&files, input, STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&files, output, STDOUT_FILENO);
  ::posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
  sigset_t every, none; // Ctrl-C in a terminal must reach the parent only
  ::sigfillset(&every);
  ::sigemptyset(&none);
  ::posix_spawnattr_setsigdefault(&attributes, &every);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  pid_t id = -1;
  const int failed = ::posix_spawn(&id, words[0].c_str(), &files, &attributes, pointers_to(words).data(),
                                   pointers_to(variables).data());
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&files);
  errno = failed;
  return failed == 0 ? id : -1;
}

/// Gives a forked process the same setup as spawned(): its own process group, default signals and standard streams.
void stand_alone(int output) {
  ::setpgid(0, 0);
  for (int signal = 1; signal < NSIG; ++signal)
    ::signal(signal, SIG_DFL); // has no effect for SIGKILL and SIGSTOP
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  const int nothing = ::open("/dev/null", O_RDWR);
  ::dup2(output, STDOUT_FILENO);
  ::dup2(nothing, STDERR_FILENO);
  ::close(STDIN_FILENO);
}

/// Runs the sandbox in a forked child. An exception terminates the child: unwinding would enter the parent's frames.
[[noreturn]] void be_cell(std::span<const std::uint8_t> file, const sandbox_request& question, int output) noexcept {
  stand_alone(output);
  detach_from_parent();
  ::_exit(serve_sandbox_request(file, question));
}

} // namespace

void detach_from_parent() {
  constexpr int first_other_file = 3;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::syscall(SYS_close_range, first_other_file, ~0U, 0);
}

bool has_one_thread() {
  std::error_code error;
  const auto threads = std::filesystem::directory_iterator("/proc/self/task", error);
  return !error && std::distance(begin(threads), end(threads)) == 1;
}

pid_t exec_sandbox(const std::filesystem::path& program, std::span<const std::uint8_t> file,
                   const sandbox_request& question, int output) {
  const int input = nameless_file(file);
  if (input < 0)
    return -1;
  const auto id = spawned(words_for(program, question), input, output);
  const int reason = errno;
  ::close(input);
  errno = reason;
  return id;
}

pid_t fork_sandbox(std::span<const std::uint8_t> file, const sandbox_request& question, int output) {
  const auto id = ::fork();
  if (id != 0)
    return id;
  be_cell(file, question, output);
}

} // namespace mneme
