/// forked_tasks: functions that run in processes of their own, some at a time; one that crashes takes nothing with it.
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>
namespace mneme {

/// How a task ended.
struct forked_end {
  std::size_t task = 0;
  int code = -1;        ///< What the function returned; -1 after a signal.
  int signal = 0;       ///< What killed it; 0: nothing did.
  std::string errors{}; ///< The end of what it wrote to stderr.
};

/// What the parent has loaded its children share, page by page, until they write to it. They die with it, whatever ends
/// it, and get no signals of the terminal. @pre the parent has one thread whenever start() is called
class forked_tasks {
public:
  forked_tasks() = default;
  forked_tasks(const forked_tasks&) = delete;
  forked_tasks& operator=(const forked_tasks&) = delete;
  ~forked_tasks(); ///< Kills those that still run.

  /// @throws std::system_error where the system has no process to give
  void start(std::size_t task, const std::function<int()>& act);
  [[nodiscard]] std::size_t running() const noexcept { return running_.size(); }
  /// The next that ends; null if none does within `patience`.
  [[nodiscard]] std::optional<forked_end> next_end(std::chrono::milliseconds patience);
  /// SIGTERM to those that run.
  void terminate() const;

private:
  struct process {
    pid_t id = -1;
    std::size_t task = 0;
    int errors = -1; ///< A file without a name.
  };
  std::vector<process> running_;
};

} // namespace mneme
