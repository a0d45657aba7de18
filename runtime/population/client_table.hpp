/// client_table: reads CSV files in which each line has a client and its numbers.
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

/// Description of the columns that a file has or may have.
struct client_table_format {
  std::filesystem::path file{};
  std::string where{}; ///< Key that names the file, for diagnostics.
  std::int64_t clients = 0;
  std::vector<std::string> columns{};  ///< Required columns, in addition to `client`.
  std::vector<std::string> optional{}; ///< Columns that may be missing.
  bool allows_others = false;          ///< True: unknown columns are ignored. False: they are errors.
};

/// One line: the client, the values of `columns`, and the values of `optional`. A missing column or an empty field is
/// nullopt.
struct client_line {
  std::uint32_t client = 0;
  std::vector<std::optional<double>> values{};
  std::size_t line = 0;
};

/// Reads all lines. Returns a limited number of errors with line numbers.
/// @param take is called for each line; returns an error text, or ""
[[nodiscard]] diagnostics read_client_table(const client_table_format& form,
                                            const std::function<std::string(const client_line&)>& take);

/// Validates the times of a span. Returns the error, or "".
[[nodiscard]] std::string validate_span(double from, double to);

/// Error for a span that begins before another span of the same client has ended.
[[nodiscard]] diagnostic overlap(const std::filesystem::path& file, std::size_t line, client_id client,
                                 virtual_time from, virtual_time others_end, std::size_t others_line);

/// The last span of a trace: its location ("links.csv:7"), client and end.
struct last_span {
  std::string where{};
  client_id client{};
  double ends_s = 0.0;
};

/// Reads the file again to find the last span, for an error message. Returns nullopt if no span matches. @param form
/// file, key and clients @param client restricts the search to this client @pre the file was read without errors
[[nodiscard]] std::optional<last_span> last_span_of(client_table_format form, std::optional<client_id> client = {});

/// Sorts spans by client and time. Overlapping spans of one client are added to `errors`.
/// @param lines spans with members client, from and to, and their line numbers
template <class Span>
std::vector<Span> order_spans(const std::filesystem::path& file, std::vector<std::pair<Span, std::size_t>> lines,
                              diagnostics& errors) {
  std::stable_sort(lines.begin(), lines.end(), [](const auto& a, const auto& b) {
    return std::tie(a.first.client, a.first.from) < std::tie(b.first.client, b.first.from);
  });
  std::vector<Span> spans;
  spans.reserve(lines.size());
  for (const auto& [span, line] : lines) {
    if (!spans.empty() && spans.back().client == span.client && spans.back().to > span.from &&
        errors.size() < csv::diagnostics_max)
      errors.push_back(overlap(file, line, span.client, span.from, spans.back().to, lines[spans.size() - 1].second));
    spans.push_back(span);
  }
  return spans;
}

} // namespace mneme
