/// trim: removes surrounding white space.
#pragma once
#include <string_view>
namespace mneme {

/// Returns `text` without leading and trailing blanks, tabs and carriage returns.
[[nodiscard]] inline std::string_view trim(std::string_view text) {
  constexpr std::string_view blanks = " \t\r";
  const auto first = text.find_first_not_of(blanks);
  return first == std::string_view::npos ? std::string_view()
                                         : text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

} // namespace mneme
