/// printable: text from outside as it may go to a terminal.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>
namespace mneme {

/// `text`, in which every control character but tabs and line breaks has become "?", because a terminal would obey it,
/// and every byte that belongs to no character of UTF-8, because readers of logs stumble over it.
[[nodiscard]] std::string printable(std::string_view text);

/// A message that may quote a file's content: printable(). One that is longer than `bytes_max` keeps its first part
/// and its end, which says what was expected; the number of omitted bytes stands between them.
[[nodiscard]] std::string printable_message(std::string_view text, std::size_t bytes_max = 4000);

/// True where every byte of `text` belongs to a character of UTF-8, as in all files of TOML and JSON.
[[nodiscard]] bool is_utf8(std::string_view text);

} // namespace mneme
