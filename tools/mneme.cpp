#include "tools/cli/command_line.hpp"
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <iostream>
#include <unistd.h>

namespace {

/// The next file that is opened gets the lowest free number, and what is printed would go into it: standard streams
/// that were closed lead to nowhere.
void open_standard_streams() {
  for (int number = STDIN_FILENO; number <= STDERR_FILENO; ++number)
    if (::fcntl(number, F_GETFD) < 0 && ::open("/dev/null", O_RDWR) < 0)
      std::_Exit(mneme::exit_failed);
}

} // namespace

int main(int count, char** words) {
  open_standard_streams();
  const int code = mneme::run_command_line(count, words);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) // which look for leaks at the end
  // LibTorch would take a tenth of a second to forget its operators one by one.
  std::cout.flush();
  std::fflush(nullptr);
  std::_Exit(code);
#endif
  return code;
}
