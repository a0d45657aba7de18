/// csv_table: reads a CSV table with a header, one label column and numeric columns.
#pragma once
#include "runtime/data/user_rows.hpp"
namespace mneme {

struct csv_table {
  image_table train{}, test{}; ///< [n, 1, 1, F] float32, in line order.
  user_classes classes{};
};

/// Reads data.file. Numeric columns keep the header's order. Each invalid line gives a diagnostic with its line number,
/// up to a limit per column. Labels and domains are numbered as table_words sorts them.
[[nodiscard]] expected<csv_table> read_csv_table(const data_section& data);

} // namespace mneme
