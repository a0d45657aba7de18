#include "tools/cli/forked_tasks.hpp"
#include "runtime/base/exception_message.hpp"
#include "runtime/base/intra_op_threads.hpp"
#include "tools/cli/command_line.hpp"
#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <system_error>
#include <thread>
#include <unistd.h>
namespace mneme {
namespace {

constexpr off_t errors_max = 1 << 16;

/// Runs the task in the child process and exits with its return value.
[[noreturn]] void become_task(pid_t parent, int errors, const std::function<int()>& act) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) // the parent died before this process set its death signal
    ::_exit(exit_failed);
  const int nothing = ::open("/dev/null", O_RDWR);
  ::dup2(nothing, STDIN_FILENO);
  ::dup2(nothing, STDOUT_FILENO);
  ::dup2(errors, STDERR_FILENO);
  int code = exit_failed;
  if (const auto reason = exception_message_of([&] { code = act(); }); !reason.empty())
    std::fprintf(stderr, "error: %s\n", reason.c_str());
  std::fflush(nullptr);
  ::_exit(code);
}

std::string end_of(int file) {
  const auto bytes = ::lseek(file, 0, SEEK_END);
  const auto from = std::max<off_t>(0, bytes - errors_max);
  std::string text(static_cast<std::size_t>(std::max<off_t>(0, bytes - from)), '\0');
  const auto got = ::pread(file, text.data(), text.size(), from);
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(0, got)));
  return text;
}

} // namespace

forked_tasks::~forked_tasks() {
  for (const auto& child : running_) {
    ::kill(child.id, SIGKILL);
    ::waitpid(child.id, nullptr, 0);
    ::close(child.errors);
  }
}

void forked_tasks::start(std::size_t task, const std::function<int()>& act) {
  const int errors = ::memfd_create("errors", MFD_CLOEXEC);
  if (errors < 0)
    throw std::system_error(errno, std::generic_category(), "cannot start a child process");
  std::fflush(nullptr); // else the child would write the buffered output again
  const auto parent = ::getpid();
  const auto id = ::fork();
  if (id < 0) {
    const int reason = errno;
    ::close(errors);
    throw std::system_error(reason, std::generic_category(), "cannot start a child process");
  }
  if (id == 0) {
    compute_on_one_thread_after_fork();
    become_task(parent, errors, act);
  }
  running_.push_back({.id = id, .task = task, .errors = errors});
}

std::optional<task_exit> forked_tasks::next_end(std::chrono::milliseconds patience) {
  constexpr std::chrono::milliseconds nap(10);
  for (auto waited = std::chrono::milliseconds(0);; waited += nap) {
    for (auto child = running_.begin(); child != running_.end(); ++child) {
      int status = 0;
      if (::waitpid(child->id, &status, WNOHANG) != child->id)
        continue;
      task_exit ended{.task = child->task, .errors = end_of(child->errors)};
      if (WIFEXITED(status))
        ended.code = WEXITSTATUS(status);
      else
        ended.signal = WTERMSIG(status);
      ::close(child->errors);
      running_.erase(child);
      return ended;
    }
    if (waited >= patience)
      return std::nullopt;
    std::this_thread::sleep_for(nap);
  }
}

void forked_tasks::terminate() const {
  for (const auto& child : running_)
    ::kill(child.id, SIGTERM);
}

} // namespace mneme
