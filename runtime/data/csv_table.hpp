/// csv_table: the rows of a table with a header, a column of labels and columns of numbers.
#pragma once
#include "runtime/data/own_rows.hpp"
namespace mneme {

struct csv_table {
  image_table train{}, test{}; ///< [n, 1, 1, F] float32, in the order of the lines
  own_classes classes{};
};

/// Reads data.file. Columns of numbers keep the order of the header. Each wrong line is a diagnostic with its number;
/// of one column the first wrong lines are reported. Labels and domains are numbered in the order of table_words.
[[nodiscard]] expected<csv_table> read_csv_table(const data_section& data);

} // namespace mneme
