/// diagnostic: one error in an input, as a message for its author.
#pragma once
#include <string>
#include <tl/expected.hpp>
#include <vector>
namespace mneme {

/// `where` is "file:line:column", "file: byte n", "--set", or "" for the command line. `text` states what was found,
/// what was expected, and the likely fix.
struct diagnostic {
  std::string where{};
  std::string text{};
  bool operator==(const diagnostic&) const = default;
};
/// All errors of an input, in input order. Never empty when returned as an error.
using diagnostics = std::vector<diagnostic>;

template <class T>
using expected = tl::expected<T, diagnostics>;

/// Makes an error with one diagnostic: `return failed(where, text);`
[[nodiscard]] inline tl::unexpected<diagnostics> failed(std::string where, std::string text) {
  return tl::unexpected<diagnostics>{diagnostics{diagnostic{std::move(where), std::move(text)}}};
}

/// Appends diagnostics, for readers that continue after an error in order to report all of them.
inline void append(diagnostics& to, const diagnostics& added) { to.insert(to.end(), added.begin(), added.end()); }

/// Formats "where: error: text", or "error: text" if `where` is empty.
[[nodiscard]] inline std::string diagnostic_text(const diagnostic& problem) {
  return problem.where.empty() ? "error: " + problem.text : problem.where + ": error: " + problem.text;
}

/// The candidate with the smallest edit distance to `word`. Returns "" if none is close.
[[nodiscard]] std::string closest_match(std::string_view word, const std::vector<std::string>& candidates);

} // namespace mneme
