/// messages: prints errors and warnings, in the same format for all commands.
#pragma once
#include "runtime/base/diagnostic.hpp"
#include "tools/cli/command_line.hpp"
namespace mneme {

/// Prints "error: text" on stderr; returns exit_bad_input.
int bad_input(const std::string& text);
/// Prints "unknown WHAT 'word'; did you mean 'x'?", or the known words; returns exit_bad_input.
int unknown_word(const std::string& text, const std::string& word, const std::vector<std::string>& known);
/// Prints "file:line:column: error: text" on stderr; returns exit_bad_input.
int print_errors(const diagnostics& problems);

enum class warning_style { text, json, none };
/// Prints "file:line:column: warning: text" on stderr, or a JSON object per line on stdout.
void print_warnings(const diagnostics& problems, warning_style style);

[[nodiscard]] std::string join_by_comma(const std::vector<std::string>& words);
/// Prints two columns, indented by two; the first is as wide as its longest entry.
void print_columns(const std::vector<std::pair<std::string, std::string>>& rows);

} // namespace mneme
