#include "runtime/data/splits.hpp"
#include "runtime/base/new_tensor.hpp"
#include <algorithm>
namespace mneme {

expected<raw_data> with_splits(raw_data about, expected<image_table> train, expected<image_table> test) {
  if (auto errors = all_diagnostics(train, test); !errors.empty())
    return tl::unexpected(errors);
  about.train = std::move(*train);
  about.test = std::move(*test);
  return about;
}

image_table selected(const image_table& table, const std::vector<std::int64_t>& rows) {
  image_table kept;
  auto indices = new_tensor({std::ssize(rows)}, at::kLong);
  std::copy(rows.begin(), rows.end(), indices.mutable_data_ptr<std::int64_t>());
  kept.images = table.images.index_select(0, indices);
  for (const auto row : rows) {
    kept.file_rows.push_back(table.file_rows.empty() ? row : table.file_rows[static_cast<std::size_t>(row)]);
    kept.labels.push_back(table.labels[static_cast<std::size_t>(row)]);
    if (!table.domains.empty())
      kept.domains.push_back(table.domains[static_cast<std::size_t>(row)]);
  }
  return kept;
}

image_table limited(image_table table, row_limits limits, std::int64_t classes) {
  row_filter filter(limits, classes);
  std::vector<std::int64_t> rows;
  for (std::size_t row = 0; row < table.labels.size(); ++row)
    if (filter.keep(table.labels[row], table.domains.empty() ? 0 : table.domains[row]))
      rows.push_back(static_cast<std::int64_t>(row));
  return std::ssize(rows) == table.size() ? std::move(table) : selected(table, rows);
}

} // namespace mneme
