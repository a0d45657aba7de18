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

/// Opens /dev/null for closed standard streams. Otherwise the next opened file would get the number of a standard
/// stream, and the program's output would be written to it.
void open_standard_streams() {
  for (int number = STDIN_FILENO; number <= STDERR_FILENO; ++number)
    if (::fcntl(number, F_GETFD) < 0 && ::open("/dev/null", O_RDWR) < 0)
      std::_Exit(mneme::exit_failed);
}

/// The terminate handler: reports an uncaught exception. Output files are complete, because they are renamed only after
/// they are written.
[[noreturn]] void end_in_words() noexcept {
  try {
    if (const auto thrown = std::current_exception())
      std::rethrow_exception(thrown);
    std::fputs("error: the program cannot continue\n", stderr);
  } catch (const std::bad_alloc& error) { // handled without allocating memory
    std::fputs("error: ", stderr);
    std::fputs(error.what(), stderr);
    std::fputs("\n", stderr);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", mneme::printable_message(error.what()).c_str());
  } catch (...) {
    std::fputs("error: an exception of an unknown type was thrown\n", stderr);
  }
  std::_Exit(mneme::exit_failed);
}

} // namespace

int main(int count, char** words) {
  open_standard_streams();
  std::set_terminate(end_in_words);
  mneme::apply_arithmetic(words);
  std::signal(SIGXFSZ, SIG_IGN); // a write beyond the limit of file sizes then returns an error
  std::signal(SIGPIPE, SIG_IGN); // `mneme help | head -1` then ends with an exit code, not by a signal
  const std::span<const char* const> arguments(words + 1, words + std::max(count, 1));
  mneme::use_arithmetic(); // needed for the probe of a module and for the run
  if (!arguments.empty() && std::string_view(arguments[0]) == mneme::sandbox_argument) // an internal call, not a
                                                                                       // command
    std::_Exit(mneme::sandbox_main(arguments));
  const bool serves_peers = !arguments.empty() && std::string_view(arguments[0]) == "node"; // a node reports to its
                                                                                            // peer why a module is
                                                                                            // refused
  mneme::set_sandbox_program("/proc/self/exe", serves_peers ? mneme::sandbox_start::exec_program
                                                            : mneme::sandbox_start::fork_if_single_threaded);
  const int code = mneme::run_command_line(count, words);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) // they report leaks at the end
  // LibTorch's destructors would take 0.1 s.
  std::cout.flush();
  std::fflush(nullptr);
  std::_Exit(code);
#endif
  return code;
}
