/// printable: makes untrusted text safe to print on a terminal.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>
namespace mneme {

/// Replaces each control character except tabs and line breaks with "?", because a terminal would interpret it. Also
/// replaces bytes that are not valid UTF-8, because log readers fail on them.
[[nodiscard]] std::string printable(std::string_view text);

/// printable() for messages that may quote a file's content. If the message exceeds `bytes_max`, its middle is replaced
/// with the number of omitted bytes; the end, which states the expected value, is kept.
[[nodiscard]] std::string printable_message(std::string_view text, std::size_t bytes_max = 4000);

/// True if all of `text` is valid UTF-8, as TOML and JSON require.
[[nodiscard]] bool is_utf8(std::string_view text);

} // namespace mneme
