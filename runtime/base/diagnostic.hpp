/// diagnostic: one thing that is wrong with an input, in words for the person who wrote it.
#pragma once
#include <string>
#include <tl/expected.hpp>
#include <vector>
namespace mneme {

/// `where` is "file:line:column", "file: byte n", "--set", or "" (the command line). `text` says what was
/// found, what was expected, and the likely fix.
struct diagnostic {
  std::string where{};
  std::string text{};
  bool operator==(const diagnostic&) const = default;
};
/// All that is wrong, in the order of the input. Never empty when returned as an error.
using diagnostics = std::vector<diagnostic>;

template <class T>
using expected = tl::expected<T, diagnostics>;

/// For `return failed(where, text);`
[[nodiscard]] inline tl::unexpected<diagnostics> failed(std::string where, std::string text) {
  return tl::unexpected<diagnostics>{diagnostics{diagnostic{std::move(where), std::move(text)}}};
}

/// For readers that go on, to name all that is wrong.
inline void append(diagnostics& to, const diagnostics& added) { to.insert(to.end(), added.begin(), added.end()); }

/// "where: error: text", or "error: text" if there is no place to name.
[[nodiscard]] inline std::string diagnostic_text(const diagnostic& problem) {
  return problem.where.empty() ? "error: " + problem.text : problem.where + ": error: " + problem.text;
}

/// The candidate nearest to `word` by edit distance, or "" if none is near enough to be meant.
[[nodiscard]] std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

} // namespace mneme
