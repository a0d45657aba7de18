/// Errors and warnings as every command prints them.
#pragma once
#include "runtime/base/diagnostic.hpp"
#include "tools/cli/command_line.hpp"
namespace mneme {

/// "error: text" on stderr; returns exit_bad_input.
int bad_input(const std::string& text);
/// "unknown WHAT 'word'; did you mean 'x'?", or all that is known; returns exit_bad_input.
int unknown_word(const std::string& text, const std::string& word, const std::vector<std::string>& known);
/// "file:line:column: error: text" on stderr; returns exit_bad_input.
int print_errors(const diagnostics& problems);

enum class warning_style { text, json, none };
/// "file:line:column: warning: text" on stderr, or a JSON object per line on stdout.
void print_warnings(const diagnostics& problems, warning_style style);

[[nodiscard]] std::string joined_by_comma(const std::vector<std::string>& words);
/// Two columns, the first as wide as its longest entry, indented by two.
void print_columns(const std::vector<std::pair<std::string, std::string>>& rows);

} // namespace mneme
