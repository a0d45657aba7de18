/// lower_case: converts text to lower case, independent of the locale.
#pragma once
#include <algorithm>
#include <string>
#include <string_view>
namespace mneme {

/// Converts A-Z to a-z; all other bytes stay unchanged.
[[nodiscard]] inline std::string lower_case(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](char c) { return 'A' <= c && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return lower;
}

} // namespace mneme
