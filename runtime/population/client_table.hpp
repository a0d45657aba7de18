/// client_table: the lines of a CSV file that says something of clients, column by column.
#pragma once
#include "runtime/base/csv_fields.hpp"
#include "runtime/base/diagnostic.hpp"
#include "runtime/base/ids.hpp"
#include "runtime/base/virtual_clock.hpp"
#include <algorithm>
#include <filesystem>
#include <functional>
#include <optional>
#include <tuple>
namespace mneme {

/// What a file should look like.
struct client_table_form {
  std::filesystem::path file{};
  std::string where{}; ///< The key that names the file, for a diagnostic.
  std::int64_t clients = 0;
  std::vector<std::string> columns{};  ///< Besides `client`.
  std::vector<std::string> optional{}; ///< They may be missing.
  bool allows_others = false;          ///< Further columns are skipped; else they are an error.
};

/// A line: the client, and the numbers of `columns`, then of `optional` (none: no such column, or an empty field).
struct client_line {
  std::uint32_t client = 0;
  std::vector<std::optional<double>> values{};
  std::size_t line = 0;
};

/// Reads all lines. @param take says what is wrong with one; empty: nothing
/// Fails with at most a few diagnostics, each with its line. A column that the form does not name is an error.
[[nodiscard]] diagnostics read_client_table(const client_table_form& form,
                                            const std::function<std::string(const client_line&)>& take);

/// Times of a span as such files have them. Returns what is wrong; empty: nothing.
[[nodiscard]] std::string wrong_span(double from, double to);

/// What is wrong with a span of `line` that begins before another one of its client is over.
[[nodiscard]] diagnostic overlap(const std::filesystem::path& file, std::size_t line, client_id client,
                                 virtual_time from, virtual_time others_end, std::size_t others_line);

/// Where a trace ends: "links.csv:7", whose, and when.
struct last_span {
  std::string where{};
  client_id client{};
  double ends_s = 0.0;
};

/// Reads a file of spans again, for a message. @param form its file, key and clients @param client whose; none:
/// anybody's None: the file has no such span. @pre it can be read
[[nodiscard]] std::optional<last_span> last_span_of(client_table_form form, std::optional<client_id> client = {});

/// Spans, which have `client`, `from` and `to`, each with its line, by client and then time. Two of a client that share
/// some time go to `wrong`: one of them is wrong, and nothing says which.
template <class Span>
std::vector<Span> ordered_spans(const std::filesystem::path& file, std::vector<std::pair<Span, std::size_t>> lines,
                                diagnostics& wrong) {
  std::stable_sort(lines.begin(), lines.end(), [](const auto& a, const auto& b) {
    return std::tie(a.first.client, a.first.from) < std::tie(b.first.client, b.first.from);
  });
  std::vector<Span> spans;
  spans.reserve(lines.size());
  for (const auto& [span, line] : lines) {
    if (!spans.empty() && spans.back().client == span.client && spans.back().to > span.from &&
        wrong.size() < csv::diagnostics_max)
      wrong.push_back(overlap(file, line, span.client, span.from, spans.back().to, lines[spans.size() - 1].second));
    spans.push_back(span);
  }
  return spans;
}

} // namespace mneme
