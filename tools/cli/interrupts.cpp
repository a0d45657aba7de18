#include "tools/cli/interrupts.hpp"
#include "tools/cli/command_line.hpp"
#include <csignal>
#include <unistd.h>
namespace mneme {
namespace {

// Global, because a signal handler cannot use anything else.
std::atomic<int> interrupts{0};
static_assert(std::atomic<int>::is_always_lock_free);

void count_interrupt(int) {
  if (interrupts.fetch_add(1) > 0)
    ::_exit(exit_interrupted);
}

void handle_by(void (*handler)(int), int signal) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  ::sigaction(signal, &action, nullptr);
}

} // namespace

const std::atomic<int>& watch_interrupts() {
  handle_by(count_interrupt, SIGINT);
  handle_by(count_interrupt, SIGTERM);
  std::signal(SIGPIPE, SIG_IGN); // else writing to a closed stdout would end the run
  return interrupts;
}

} // namespace mneme
