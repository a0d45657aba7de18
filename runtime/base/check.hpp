/// MNEME_CHECK: checks an invariant in all builds. If it is violated, prints the values and aborts.
#pragma once
#include <sstream>
#include <string>
namespace mneme {

/// Prints `file:line: check failed: condition (values)` to stderr and aborts.
[[noreturn]] void check_failed(const char* file, int line, const char* condition, const std::string& values);

template <class... Values>
std::string values_text(const Values&... values) {
  std::ostringstream text;
  [[maybe_unused]] const char* comma = ""; // unused if the parameter pack is empty
  ((text << comma << values, comma = ", "), ...);
  return text.str();
}

} // namespace mneme

/// MNEME_CHECK(condition, values...): for programming errors only. Bad input is reported as a `diagnostic`.
#define MNEME_CHECK(condition, ...)                                                                                    \
  ((condition) ? void(0) : ::mneme::check_failed(__FILE__, __LINE__, #condition, ::mneme::values_text(__VA_ARGS__)))
