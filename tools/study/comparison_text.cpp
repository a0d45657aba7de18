#include "tools/study/comparison_text.hpp"
#include "runtime/base/csv_fields.hpp"
#include "tools/charts/escape_markup.hpp"
#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
namespace mneme {
namespace {

/// Table of texts; the first line is the header.
struct text_table {
  std::string title{};
  std::vector<std::vector<std::string>> lines{};
  std::size_t labels = 0; ///< Number of label columns; they come first and are left-aligned.
};

/// Format of a column's numbers: number of decimals, and the unit of bytes.
struct number_form {
  int digits = 2;
  double unit = 1.0;
  const char* unit_name = "";
};

/// Chooses the format by the largest mean of the column.
number_form form_of(const comparison& table, std::size_t column) {
  constexpr std::array units{"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  double largest = 0.0;
  for (const auto& row : table.rows)
    largest = std::max(largest, std::abs(row.cells[column].statistics.mean.value_or(0.0)));
  number_form form;
  if (table.columns[column].metric.ends_with("_bytes")) {
    std::size_t power = 0;
    for (; power + 1 < units.size() && largest >= 1024.0; ++power) {
      largest /= 1024.0;
      form.unit *= 1024.0;
    }
    form.unit_name = units[power];
    form.digits = power == 0 ? 0 : 2;
    return form;
  }
  form.digits = largest >= 1'000.0 ? 0 : largest >= 1.0 || largest == 0.0 ? 2 : 4;
  return form;
}

/// Converts a sample to the unit of the format.
sample_statistics in_unit(sample_statistics sample, const number_form& form) {
  for (auto* value : {&sample.mean, &sample.deviation, &sample.half_width})
    if (*value)
      **value /= form.unit;
  return sample;
}

std::string shown(const std::optional<double>& value, int digits) {
  return value ? fmt::format("{:.{}f}", *value, digits) : "-";
}

/// Formats "71.20 ± 0.50 [69.96, 72.44]"; for a single run only the value.
std::string with_interval(const sample_statistics& of_values, const number_form& form, bool deviation, bool sign) {
  const auto sample = in_unit(of_values, form);
  const int digits = form.digits;
  if (!sample.mean)
    return "-";
  auto text = sign ? fmt::format("{:+.{}f}", *sample.mean, digits) : shown(sample.mean, digits);
  if (!sample.half_width)
    return text;
  if (deviation)
    text += " ± " + shown(sample.deviation, digits);
  return text + fmt::format(" [{:.{}f}, {:.{}f}]", *sample.mean - *sample.half_width, digits,
                            *sample.mean + *sample.half_width, digits);
}

/// Formats "upload_bytes (MiB)"; ranks have no unit.
std::string column_name(const comparison& table, std::size_t c, bool unit) {
  const auto& column = table.columns[c];
  const std::string name = unit ? form_of(table, c).unit_name : "";
  const auto metric = name.empty() ? column.metric : fmt::format("{} ({})", column.metric, name);
  return column.value.empty() ? metric : fmt::format("{} = {}: {}", table.column_key, column.value, metric);
}

enum class table_kind { means, differences, ranks };

/// Builds a table with row labels and one cell per column.
template <class Cell>
text_table make_table(const comparison& table, std::string title, table_kind kind, Cell cell) {
  const bool with_seeds = kind == table_kind::means;
  text_table text{.title = std::move(title), .labels = table.by.size()};
  auto head = table.by;
  if (with_seeds)
    head.emplace_back("runs");
  for (std::size_t c = 0; c < table.columns.size(); ++c)
    head.push_back(column_name(table, c, kind != table_kind::ranks));
  text.lines.push_back(std::move(head));
  for (const auto& row : table.rows) {
    auto line = row.labels;
    if (with_seeds)
      line.push_back(std::to_string(row.seeds.size()));
    for (std::size_t c = 0; c < row.cells.size(); ++c)
      line.push_back(cell(row, c));
    text.lines.push_back(std::move(line));
  }
  return text;
}

std::vector<text_table> tables_of(const comparison& table) {
  std::vector<text_table> tables;
  tables.push_back(make_table(table, "mean ± sample deviation over seeds [95 % interval]", table_kind::means,
                              [&](const compared_row& row, std::size_t c) {
                                const auto& sample = row.cells[c].statistics;
                                auto text = with_interval(sample, form_of(table, c), true, false);
                                const auto runs = std::ssize(row.seeds);
                                if (table.column_key.empty() && sample.count < runs) // true if some runs have no value
                                  text += fmt::format(" ({} of {})", sample.count, runs);
                                return text;
                              }));
  if (table.rows.size() < 2)
    return tables;
  const auto base = fmt::format("{}", fmt::join(table.rows[table.baseline].labels, ", "));
  tables.push_back(make_table(table, "difference to (" + base + "), paired by seed [95 % interval]",
                              table_kind::differences, [&](const compared_row& row, std::size_t c) {
                                const bool same = &row == &table.rows[table.baseline];
                                return same ? std::string("-")
                                            : with_interval(row.cells[c].difference, form_of(table, c), false, true);
                              }));
  tables.push_back(make_table(table, "mean rank over seeds, 1 is the best", table_kind::ranks,
                              [](const compared_row& row, std::size_t c) { return shown(row.cells[c].rank, 2); }));
  return tables;
}

/// Width in terminal columns: the number of code points of the UTF-8 text.
std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(
      text.begin(), text.end(), [](char letter) { return (static_cast<unsigned char>(letter) & 0xc0) != 0x80; }));
}

std::string as_text(const text_table& table) {
  std::vector<std::size_t> widths(table.lines.front().size(), 0);
  for (const auto& line : table.lines)
    for (std::size_t i = 0; i < line.size(); ++i)
      widths[i] = std::max(widths[i], width_of(line[i]));
  auto text = table.title + "\n";
  for (const auto& line : table.lines) {
    std::string shown_line;
    for (std::size_t i = 0; i < line.size(); ++i) {
      const std::string blanks(widths[i] - width_of(line[i]), ' ');
      shown_line += (i == 0 ? "  " : "   ") + (i < table.labels ? line[i] + blanks : blanks + line[i]);
    }
    text += shown_line.substr(0, shown_line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

std::string escaped(std::string text, std::string_view letters) {
  for (std::size_t at = 0; (at = text.find_first_of(letters, at)) != std::string::npos; at += 2)
    text.insert(at, 1, '\\');
  return text;
}

std::string as_markdown(const text_table& table) {
  auto text = table.title + "\n\n";
  for (std::size_t l = 0; l < table.lines.size(); ++l) {
    for (const auto& cell : table.lines[l])
      text += "| " + escaped(cell, "|") + " ";
    text += "|\n";
    for (std::size_t i = 0; l == 0 && i < table.lines[l].size(); ++i)
      text += i < table.labels ? "|---" : "|---:";
    text += l == 0 ? "|\n" : "";
  }
  return text;
}

std::string in_latex(const std::string& text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();)
    if (const std::string_view sign = "±"; text.compare(at, sign.size(), sign) == 0) {
      out += "$\\pm$";
      at += sign.size();
    } else {
      const char letter = text[at++];
      if (letter == '\\' || letter == '~' || letter == '^')
        out += letter == '\\' ? "\\textbackslash{}" : letter == '~' ? "\\textasciitilde{}" : "\\textasciicircum{}";
      else
        (out += std::string_view("&%$#_{}").find(letter) == std::string_view::npos ? "" : "\\") += letter;
    }
  return out;
}

std::string as_latex(const text_table& table) {
  const auto columns = table.lines.front().size();
  auto text = "% " + table.title + "\n\\begin{tabular}{" + std::string(table.labels, 'l') +
              std::string(columns - table.labels, 'r') + "}\n\\hline\n";
  for (std::size_t l = 0; l < table.lines.size(); ++l) {
    for (std::size_t i = 0; i < columns; ++i)
      text += (i == 0 ? "" : " & ") + in_latex(table.lines[l][i]);
    text += l == 0 ? " \\\\\n\\hline\n" : " \\\\\n";
  }
  return text + "\\hline\n\\end{tabular}\n";
}

std::string as_html(const text_table& table) {
  const auto title = escape_markup(table.title);
  auto text = "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"" + title + "\"><table><caption>" +
              title + "</caption>\n";
  for (std::size_t l = 0; l < table.lines.size(); ++l) {
    text += l == 0 ? "<thead><tr>" : l == 1 ? "<tbody><tr>" : "<tr>";
    for (std::size_t i = 0; i < table.lines[l].size(); ++i) {
      const bool label = i < table.labels;
      const auto tag = l == 0  ? fmt::format("th scope=\"col\"{}", label ? "" : " class=\"number\"")
                       : label ? std::string("th scope=\"row\"")
                               : std::string("td class=\"number\"");
      text += "<" + tag + ">" + escape_markup(table.lines[l][i]) + "</" + tag.substr(0, 2) + ">";
    }
    text += l == 0 ? "</tr></thead>\n" : "</tr>\n";
  }
  return text + (table.lines.size() > 1 ? "</tbody>" : "") + "</table></div>\n";
}

std::string in_csv(const std::string& text) { return csv::field_text(text); }

std::string in_csv(const std::optional<double>& value) { return value ? fmt::format("{}", *value) : ""; }

std::string as_csv(const comparison& table) {
  std::string text;
  for (const auto& key : table.by)
    text += in_csv(key) + ",";
  if (!table.column_key.empty())
    text += in_csv(table.column_key) + ",";
  text += "metric,runs,mean,deviation,low,high,difference,difference_runs,difference_low,difference_high,rank\n";
  const auto bound = [](const sample_statistics& sample, double side) -> std::optional<double> {
    return sample.half_width ? std::optional(*sample.mean + side * *sample.half_width) : std::nullopt;
  };
  for (const auto& row : table.rows)
    for (std::size_t c = 0; c < table.columns.size(); ++c) {
      const auto& [by_seed, sample, rank, difference] = row.cells[c];
      for (const auto& label : row.labels)
        text += in_csv(label) + ",";
      if (!table.column_key.empty())
        text += in_csv(table.columns[c].value) + ",";
      text += fmt::format("{},{},{},{},{},{},{},{},{},{},{}\n", in_csv(table.columns[c].metric), sample.count,
                          in_csv(sample.mean), in_csv(sample.deviation), in_csv(bound(sample, -1.0)),
                          in_csv(bound(sample, 1.0)), in_csv(difference.mean), difference.count,
                          in_csv(bound(difference, -1.0)), in_csv(bound(difference, 1.0)), in_csv(rank));
    }
  return text;
}

} // namespace

std::string comparison_text(const comparison& table, comparison_format format) {
  if (format == comparison_format::csv)
    return as_csv(table);
  std::string text;
  for (const auto& shown_table : tables_of(table)) {
    text += text.empty() ? "" : "\n";
    text += format == comparison_format::text       ? as_text(shown_table)
            : format == comparison_format::markdown ? as_markdown(shown_table)
            : format == comparison_format::latex    ? as_latex(shown_table)
                                                    : as_html(shown_table);
  }
  return text;
}

} // namespace mneme
