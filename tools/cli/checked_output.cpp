#include "tools/cli/checked_output.hpp"
#include "tools/cli/command_line.hpp"
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <poll.h>
namespace mneme {
namespace {

/// False if the reader of stdout has closed it. In this case lost output is no error.
bool stdout_has_reader() {
  pollfd out{.fd = ::fileno(stdout), .events = POLLOUT, .revents = 0};
  return ::poll(&out, 1, 0) < 0 || (out.revents & POLLERR) == 0;
}

} // namespace

int with_output_checked(int code) {
  std::cout.flush();
  errno = 0;
  const bool lost = std::fflush(stdout) != 0 || std::ferror(stdout) != 0;
  if (!lost || code != exit_done || !stdout_has_reader())
    return code;
  std::fprintf(stderr, "error: cannot write all of the output%s%s\n", errno != 0 ? ": " : "",
               errno != 0 ? std::strerror(errno) : "");
  return exit_failed;
}

} // namespace mneme
