#include "tools/cli/interrupts.hpp"
#include "tools/cli/command_line.hpp"
#include <csignal>
#include <unistd.h>
namespace mneme {
namespace {

// A signal handler reaches nothing but what is global.
std::atomic<int> interrupts{0};
static_assert(std::atomic<int>::is_always_lock_free);

void count_interrupt(int) {
  if (interrupts.fetch_add(1) > 0)
    ::_exit(exit_interrupted);
}

} // namespace

const std::atomic<int>& watch_interrupts() {
  struct sigaction action {};
  action.sa_handler = count_interrupt;
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
  std::signal(SIGPIPE, SIG_IGN); // a run goes on when its progress is no longer read
  return interrupts;
}

} // namespace mneme
