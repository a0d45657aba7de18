#include "tools/cli/arithmetic.hpp"
#include "runtime/base/arithmetic.hpp"
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <unistd.h>
namespace mneme {
namespace {

char** command_line_words = nullptr;

/// Value of GLIBC_TUNABLES that keeps the user's settings and disables the C library's FMA variants.
std::string tunables() {
  constexpr std::string_view name = "glibc.cpu.hwcaps=", hidden = "-FMA,-FMA4";
  const char* const given = std::getenv("GLIBC_TUNABLES");
  std::string text = given ? given : "";
  if (text.find(hidden) != text.npos)
    return text;
  if (const auto place = text.find(name); place != text.npos)
    return text.insert(place + name.size(), std::string(hidden) + ",");
  return text + (text.empty() ? "" : ":") + std::string(name) + std::string(hidden);
}

/// Environment variables that make the libraries use portable arithmetic.
std::array<std::pair<const char*, std::string>, 3> bindings() {
  return {{{arithmetic_variable, portable_word}, {"ATEN_CPU_CAPABILITY", "avx2"}, {"GLIBC_TUNABLES", tunables()}}};
}

bool are_bound() {
  for (const auto& [name, value] : bindings())
    if (const char* const said = std::getenv(name); !said || said != value)
      return false;
  return true;
}

bool machine_can() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
  return false;
#endif
}

/// Restarts the program. Returns an error text if that fails.
std::string start_again() {
  if (!has_portable_arithmetic())
    return no_portable_arithmetic;
  if (!machine_can())
    return "portable arithmetic needs an x86-64 processor with AVX2 and FMA, which this machine does not have";
  for (const auto& [name, value] : bindings())
    ::setenv(name, value.c_str(), 1);
  ::execv("/proc/self/exe", command_line_words);
  return std::string("cannot restart the program for portable arithmetic: ") + std::strerror(errno);
}

} // namespace

void apply_arithmetic(char** words) {
  command_line_words = words;
  const char* const said = std::getenv(arithmetic_variable);
  if (!said || *said == 0 || std::string_view(said) == "machine")
    return;
  if (std::string_view(said) != portable_word) {
    std::fprintf(stderr, "error: %s = '%s': expected machine or portable\n", arithmetic_variable, said);
    std::_Exit(2);
  }
  if (are_bound() && machine_can())
    return;
  std::fprintf(stderr, "error: %s\n", start_again().c_str());
  std::_Exit(2);
}

expected<void> reexec_with(arithmetic_kind asked) {
  if (asked != arithmetic_kind::portable || is_portable())
    return {};
  if (!command_line_words)
    return {}; // without the command line the program cannot restart; the run reports the problem
  return failed("worker.arithmetic", start_again());
}

} // namespace mneme
