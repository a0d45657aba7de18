#include "tools/cli/messages.hpp"
#include "runtime/base/printable.hpp"
#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
namespace mneme {

int bad_input(const std::string& text) { return print_errors({{"", text}}); }

int unknown_word(const std::string& text, const std::string& word, const std::vector<std::string>& known) {
  const auto meant = closest_match(word, known);
  return bad_input("unknown " + text + " '" + word + "'; " +
                   (meant.empty() ? "expected one of " + join_by_comma(known) : "did you mean '" + meant + "'?"));
}

int print_errors(const diagnostics& problems) {
  constexpr std::size_t printed_max = 200;
  const auto printed = std::min(problems.size(), printed_max);
  for (std::size_t i = 0; i < printed; ++i)
    std::fprintf(stderr, "%s\n", printable_message(diagnostic_text(problems[i])).c_str());
  if (printed < problems.size())
    std::fprintf(stderr, "error: %zu more errors are not shown\n", problems.size() - printed);
  return exit_bad_input;
}

void print_warnings(const diagnostics& problems, warning_style style) {
  for (const auto& [where, text] : problems) {
    if (style == warning_style::text)
      std::fprintf(stderr, "%s: warning: %s\n", printable_message(where).c_str(), printable_message(text).c_str());
    if (style != warning_style::json)
      continue;
    const nlohmann::ordered_json line{{"event", "warning"}, {"where", where}, {"text", text}};
    std::printf("%s\n", line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
  }
  std::fflush(stdout);
}

std::string join_by_comma(const std::vector<std::string>& words) {
  std::string text;
  for (const auto& word : words)
    (text += text.empty() ? "" : ", ") += word;
  return text;
}

void print_columns(const std::vector<std::pair<std::string, std::string>>& rows) {
  std::size_t width = 0;
  for (const auto& [left, right] : rows)
    width = std::max(width, left.size());
  for (const auto& [left, right] : rows)
    if (right.empty())
      std::printf("  %s\n", printable(left).c_str());
    else
      std::printf("  %-*s  %s\n", static_cast<int>(width), printable(left).c_str(), printable(right).c_str());
}

} // namespace mneme
