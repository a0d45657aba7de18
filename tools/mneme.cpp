#include "runtime/base/arithmetic.hpp"
#include "runtime/base/printable.hpp"
#include "runtime/models/user_module.hpp"
#include "tools/cli/arithmetic.hpp"
#include "tools/cli/command_line.hpp"
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fcntl.h>
#include <iostream>
#include <new>
#include <span>
#include <string_view>
#include <unistd.h>

namespace {

/// The next file that is opened gets the lowest free number, and what is printed would go into it: standard streams
/// that were closed lead to nowhere.
void open_standard_streams() {
  for (int number = STDIN_FILENO; number <= STDERR_FILENO; ++number)
    if (::fcntl(number, F_GETFD) < 0 && ::open("/dev/null", O_RDWR) < 0)
      std::_Exit(mneme::exit_failed);
}

/// An exception that nobody can catch, in words. What was written is whole: files are renamed when they are.
[[noreturn]] void end_in_words() noexcept {
  try {
    if (const auto thrown = std::current_exception())
      std::rethrow_exception(thrown);
    std::fputs("error: the program cannot go on\n", stderr);
  } catch (const std::bad_alloc& error) { // nor is there memory for a text
    std::fputs("error: ", stderr);
    std::fputs(error.what(), stderr);
    std::fputs("\n", stderr);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", mneme::printable_message(error.what()).c_str());
  } catch (...) {
    std::fputs("error: something was thrown that is not a std::exception\n", stderr);
  }
  std::_Exit(mneme::exit_failed);
}

} // namespace

int main(int count, char** words) {
  open_standard_streams();
  std::set_terminate(end_in_words);
  mneme::apply_arithmetic(words);
  std::signal(SIGXFSZ, SIG_IGN); // a limit of file sizes is an error of the write that meets it, as a full disk is
  std::signal(SIGPIPE, SIG_IGN); // and so is a reader that goes away: `mneme help | head -1` has an exit code
  const std::span<const char* const> arguments(words + 1, words + std::max(count, 1));
  mneme::use_arithmetic(); // modules are tried with the arithmetic that runs them
  if (!arguments.empty() && std::string_view(arguments[0]) == mneme::sandbox_argument) // no command of the user's
    std::_Exit(mneme::sandbox_main(arguments));
  const bool serves_peers = !arguments.empty() && std::string_view(arguments[0]) == "node"; // why a module is refused
  mneme::set_sandbox_program("/proc/self/exe", serves_peers ? mneme::sandbox_start::exec_program
                                                            : mneme::sandbox_start::fork_if_single_threaded);
  const int code = mneme::run_command_line(count, words);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) // which look for leaks at the end
  // LibTorch would take a tenth of a second to forget its operators one by one.
  std::cout.flush();
  std::fflush(nullptr);
  std::_Exit(code);
#endif
  return code;
}
