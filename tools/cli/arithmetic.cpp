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

/// The C library's functions have a variant for processors with FMA; this hides it, besides what is hidden already.
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

/// Variables and the values that bind the libraries.
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

/// Returns why it failed, and does not return if it has not.
std::string start_again() {
  if (!machine_can())
    return "portable arithmetic needs an x86-64 processor with AVX2 and FMA; this machine has none";
  for (const auto& [name, value] : bindings())
    ::setenv(name, value.c_str(), 1);
  ::execv("/proc/self/exe", command_line_words);
  return std::string("cannot start the program again for portable arithmetic: ") + std::strerror(errno);
}

} // namespace

void keep_arithmetic(char** words) {
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

expected<void> restart_for(arithmetic_kind asked) {
  if (asked != arithmetic_kind::portable || is_portable())
    return {};
  if (!command_line_words)
    return {}; // whoever runs scenarios without a command line is told by the run
  return failed("worker.arithmetic", start_again());
}

} // namespace mneme
