/// forked_tasks: runs functions in child processes, several at a time; a crash does not affect the others.
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>
namespace mneme {

/// Result of a child process.
struct task_exit {
  std::size_t task = 0;
  int code = -1;        ///< Return value of the function; -1 after a signal.
  int signal = 0;       ///< Signal that killed the task; 0: none.
  std::string errors{}; ///< Last part of its stderr.
};

/// Children share the parent's memory copy-on-write. They are killed if the parent ends for any reason, and receive no
/// signals from the terminal. @pre the parent is single-threaded at every call of start()
class forked_tasks {
public:
  forked_tasks() = default;
  forked_tasks(const forked_tasks&) = delete;
  forked_tasks& operator=(const forked_tasks&) = delete;
  ~forked_tasks(); ///< Kills the running tasks.

  /// @throws std::system_error if fork() fails
  void start(std::size_t task, const std::function<int()>& act);
  [[nodiscard]] std::size_t running() const noexcept { return running_.size(); }
  /// Waits for the next task to end. Returns nullopt after `patience`.
  [[nodiscard]] std::optional<task_exit> next_end(std::chrono::milliseconds patience);
  /// Sends SIGTERM to the running tasks.
  void terminate() const;

private:
  struct process {
    pid_t id = -1;
    std::size_t task = 0;
    int errors = -1; ///< File descriptor of an unnamed temporary file.
  };
  std::vector<process> running_;
};

} // namespace mneme
