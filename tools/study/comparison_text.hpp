/// comparison_text: formats a comparison for a terminal, spreadsheet, web page or paper.
#pragma once
#include "tools/study/comparison.hpp"
namespace mneme {

enum class comparison_format {
  text,     ///< Aligned text: means with deviation and interval, paired differences, ranks.
  csv,      ///< One line per row, column and metric, in full precision.
  markdown, ///< The tables of `text` in Markdown.
  latex,    ///< The tables of `text` as LaTeX tabulars.
  html,     ///< The tables of `text` in HTML, each in a region that scrolls.
};

/// Formats the comparison; the text ends with a line break.
[[nodiscard]] std::string comparison_text(const comparison& table, comparison_format format);

} // namespace mneme
