/// client_table: reads a CSV file with one client and its numbers per line.
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

/// Expected columns of a file.
struct client_table_form {
  std::filesystem::path file{};
  std::string where{}; ///< Key that names the file, for diagnostics.
  std::int64_t clients = 0;
  std::vector<std::string> columns{};  ///< Required, in addition to `client`.
  std::vector<std::string> optional{}; ///< May be missing.
  bool allows_others = false;          ///< True: unknown columns are skipped; false: they are errors.
};

/// One line: the client and its values of `columns`, then of `optional` (nullopt: column missing or field empty).
struct client_line {
  std::uint32_t client = 0;
  std::vector<std::optional<double>> values{};
  std::size_t line = 0;
};

/// Reads all lines. @param take returns an error text for a line, or ""
/// Fails with at most a few diagnostics, each with its line number.
[[nodiscard]] diagnostics read_client_table(const client_table_form& form,
                                            const std::function<std::string(const client_line&)>& take);

/// Checks the times of a span. Returns an error text, or "".
[[nodiscard]] std::string wrong_span(double from, double to);

/// Diagnostic for a span that begins before an earlier span of the same client has ended.
[[nodiscard]] diagnostic overlap(const std::filesystem::path& file, std::size_t line, client_id client,
                                 virtual_time from, virtual_time others_end, std::size_t others_line);

/// End of a trace: "links.csv:7", client and time.
struct last_span {
  std::string where{};
  client_id client{};
  double ends_s = 0.0;
};

/// Reads a file of spans again, for a message. @param form file, key and clients @param client restricts the search to
/// this client; nullopt: all clients. Returns nullopt if no span matches. @pre the file was read without errors
[[nodiscard]] std::optional<last_span> last_span_of(client_table_form form, std::optional<client_id> client = {});

/// Sorts spans (with `client`, `from` and `to`, and their line numbers) by client and time. Overlapping spans of a
/// client are reported to `wrong`.
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
