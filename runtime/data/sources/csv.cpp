// csv: user data in a CSV table, one row per line: a label, numbers, and optional columns for part and domain.
#include "runtime/data/csv_table.hpp"
#include "runtime/data/data_sources.hpp"
namespace mneme {
namespace {

expected<raw_data> load_csv(const data_section& data, std::uint64_t seed) {
  if (data.file.empty())
    return failed("data.file", "names no file; expected data.file = \"table.csv\", a table with a header");
  auto table = read_csv_table(data);
  if (!table)
    return tl::unexpected(table.error());
  return assemble_rows(std::move(table->train), std::move(table->test), table->classes, 0, data, seed);
}

const source_registration csv_line{
    {.name = "csv",
     .summary = "your own table in data.file: a header, a label column (words or numbers), numeric columns, and "
                "optionally columns split (train, test) and domain; docs/data.md",
     .load = [](const data_section& data, const auto&, std::uint64_t seed) { return load_csv(data, seed); },
     .has_domains = true,
     .is_own = true,
     .own_file = true}};

} // namespace
} // namespace mneme
