/// lower_case: text with small letters, whatever the locale.
#pragma once
#include <algorithm>
#include <string>
#include <string_view>
namespace mneme {

/// Turns A to Z into a to z. All other bytes stay as they are.
[[nodiscard]] inline std::string lower_case(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](char c) { return 'A' <= c && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return lower;
}

} // namespace mneme
