/// printable: text from outside as it may go to a terminal.
#pragma once
#include <string>
#include <string_view>
namespace mneme {

/// `text`, in which every control character but tabs and line breaks has become "?": a terminal would obey it.
[[nodiscard]] std::string printable(std::string_view text);

} // namespace mneme
