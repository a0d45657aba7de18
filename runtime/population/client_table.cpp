#include "runtime/population/client_table.hpp"
#include "runtime/base/available_memory.hpp"
#include "runtime/base/column_names.hpp"
#include "runtime/base/csv_fields.hpp"
#include "runtime/base/disk_file.hpp"
#include "runtime/base/printable.hpp"
#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
namespace mneme {
namespace {

constexpr double seconds_max = 9e9; // limit for times, in virtual seconds

class table_reader {
public:
  table_reader(const client_table_format& form, const std::function<std::string(const client_line&)>& take)
      : form_(form), take_(take) {}

  diagnostics read(std::string_view text) {
    csv::record_reader records(text);
    const bool has_header = records.next();
    line_ = has_header ? records.line() : 1;
    if (has_header && !records.error().empty())
      add_error(records.error());
    else
      read_header(records.fields());
    if (!errors_.empty())
      return std::move(errors_);
    while (errors_.size() < csv::diagnostics_max && records.next()) {
      line_ = records.line();
      if (!records.error().empty())
        add_error(records.error());
      else
        read_record(records.fields());
    }
    return std::move(errors_);
  }

private:
  void add_error(std::string text) {
    errors_.push_back({form_.file.string() + ":" + std::to_string(line_), std::move(text)});
  }

  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> columns{"client"};
    columns.insert(columns.end(), form_.columns.begin(), form_.columns.end());
    columns.insert(columns.end(), form_.optional.begin(), form_.optional.end());
    return columns;
  }

  void read_header(const std::vector<std::string_view>& fields) {
    const auto known = names();
    for (std::size_t i = 0; i < known.size(); ++i) {
      const auto at = std::find(fields.begin(), fields.end(), known[i]);
      const bool may_be_missing = i > form_.columns.size();
      if (at == fields.end() && !may_be_missing)
        add_error(
            fmt::format("the header names no column '{}'; expected a first line such as {}", known[i], example()));
      column_.push_back(at == fields.end() ? fields.size() : static_cast<std::size_t>(at - fields.begin()));
    }
    for (auto at = fields.begin(); at != fields.end() && errors_.size() < csv::diagnostics_max; ++at)
      if (std::find(fields.begin(), at, *at) != at && !at->empty())
        add_error(fmt::format("the header names the column '{}' twice; names must differ", printable(*at)));
      else if (!form_.allows_others && std::find(known.begin(), known.end(), *at) == known.end())
        add_error(unknown_column(*at, known));
    if (errors_.empty() && form_.columns.empty() && fields.size() == 1)
      add_error(fmt::format("the header names no column but client; expected any of {}, too",
                            fmt::join(form_.optional, ", ")));
    columns_ = fields.size();
  }
  [[nodiscard]] std::string example() const {
    auto text = std::string("client");
    for (const auto& column : form_.columns.empty() ? form_.optional : form_.columns)
      text += "," + column;
    return text;
  }
  [[nodiscard]] static std::string unknown_column(std::string_view name, const std::vector<std::string>& known) {
    if (name.empty())
      return "the header has a column without a name, which is not used; remove it (pandas: index=False)";
    const auto meant = csv::similar_name(name, known);
    return fmt::format("the header names an unknown column '{}'; {}", printable(name),
                       meant.empty() ? fmt::format("expected {}", fmt::join(known, ", "))
                                     : fmt::format("did you mean '{}'?", meant));
  }

  void read_record(const std::vector<std::string_view>& fields) {
    if (fields.size() != columns_)
      return add_error(fmt::format("the line has {} fields; expected {}, one for each column of the header",
                                   fields.size(), columns_));
    std::int64_t client = -1;
    if (!csv::parse_number(fields[column_[0]], client) || client < 0 || client >= form_.clients)
      return add_error(fmt::format("client = {}: expected a whole number from 0 to {} (clients.count = {})",
                                   fields[column_[0]], form_.clients - 1, form_.clients));
    client_line read{.client = static_cast<std::uint32_t>(client), .line = line_};
    const auto columns = names();
    for (std::size_t i = 1; i < columns.size(); ++i) {
      const auto field = column_[i] < columns_ ? fields[column_[i]] : std::string_view{};
      double value = 0.0;
      const bool is_given = !field.empty() || i <= form_.columns.size();
      if (is_given && (!csv::parse_number(field, value) || !(value >= 0.0 && value < seconds_max)))
        return add_error(fmt::format("{} = {}: expected {}, from 0 to 9e9", columns[i], field, meaning(columns[i])));
      read.values.push_back(is_given ? std::optional(value) : std::nullopt);
    }
    if (const auto text = take_(read); !text.empty())
      add_error(text);
  }

  static std::string meaning(const std::string& column) {
    if (column == "from" || column == "to")
      return "seconds from the beginning of the run";
    if (column == "period")
      return "seconds";
    if (column == "profile")
      return "an index in devices.profiles";
    return column == "rows_per_second" ? "rows" : "megabits per second";
  }

  const client_table_format& form_;
  const std::function<std::string(const client_line&)>& take_;
  std::vector<std::size_t> column_;
  std::size_t columns_ = 0, line_ = 1;
  diagnostics errors_;
};

} // namespace

diagnostics read_client_table(const client_table_format& form,
                              const std::function<std::string(const client_line&)>& take) {
  const auto text =
      text_of_file(form.file, static_cast<std::uint64_t>(std::max<std::int64_t>(available_memory().bytes, 0)));
  if (text)
    return table_reader(form, take).read(*text);
  std::string columns = "client";
  for (std::size_t i = 0; i < form.columns.size(); ++i)
    columns += (i + 1 == form.columns.size() ? " and " : ", ") + form.columns[i];
  return {{form.where, fmt::format("cannot read '{}' ({}); expected a CSV file with the columns {}", form.file.string(),
                                   text.error().front().text, columns)}};
}

std::string validate_span(double from, double to) {
  return to > from ? "" : fmt::format("from = {}, to = {}: expected a time that ends after it begins", from, to);
}

diagnostic overlap(const std::filesystem::path& file, std::size_t line, client_id client, virtual_time from,
                   virtual_time others_end, std::size_t others_line) {
  return {file.string() + ":" + std::to_string(line),
          fmt::format("client {}: from = {} lies within its span of line {}, which ends at {}; expected spans of a "
                      "client that do not overlap",
                      client.value, in_seconds(from), others_line, in_seconds(others_end))};
}

std::optional<last_span> last_span_of(client_table_format form, std::optional<client_id> client) {
  form.columns = {"from", "to"};
  form.optional = {};
  form.allows_others = true;
  std::optional<last_span> last;
  static_cast<void>(read_client_table(form, [&](const client_line& line) -> std::string {
    const client_id whose{line.client};
    if (whose == client.value_or(whose) && (!last || *line.values[1] > last->ends_s))
      last = {
          .where = form.file.string() + ":" + std::to_string(line.line), .client = whose, .ends_s = *line.values[1]};
    return {};
  }));
  return last;
}

} // namespace mneme
