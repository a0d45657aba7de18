/// comparison_text: formats a comparison for a terminal, spreadsheet, web page or paper.
#pragma once
#include "tools/study/comparison.hpp"
namespace mneme {

enum class comparison_format {
  text,     ///< Aligned; means with deviation and interval, paired differences, ranks.
  csv,      ///< One line per row, column and metric, in full precision.
  markdown, ///< The same tables as text.
  latex,    ///< The same as tabulars.
  html,     ///< The same as tables of a page, each in a region that scrolls.
};

/// Ends with a line break.
[[nodiscard]] std::string comparison_text(const comparison& table, comparison_format format);

} // namespace mneme
