/// benchmark_page: tables of the benchmark's recorded rows, as Markdown and as an HTML page.
#pragma once
#include "tools/study/benchmark_rows.hpp"
#include "tools/study/statistics.hpp"
namespace mneme {

/// Rows of a method on a track, over its seeds.
struct benchmark_line {
  std::string method{};
  std::vector<benchmark_row> rows{};                  ///< One row per seed.
  std::map<std::string, sample_statistics> figures{}; ///< Statistics of the numbers that benchmark_figures() names.
  sample_statistics rank{};                           ///< Mean rank by final accuracy, over the seeds that all methods
                                                      ///< have.
};

struct benchmark_track {
  std::string name{};
  std::vector<benchmark_line> lines{}; ///< The line with the highest mean final accuracy comes first.
};

/// Mean ranks of the methods that all tracks have, over all tracks and the seeds that all their methods have.
struct benchmark_ranking {
  std::vector<std::pair<std::string, sample_statistics>> methods{}; ///< The best method comes first.
  std::int64_t rankings = 0;                                        ///< Number of pairs of a track and a seed.
  /// Mean ranks that differ by less are not significantly different at 5 % (Nemenyi's test, Demsar 2006); 0 if there
  /// are fewer than two methods or rankings.
  double critical_difference = 0.0;
};

struct benchmark_table {
  std::vector<benchmark_track> tracks{};
  benchmark_ranking ranking{};
};

/// Tables of the rows. @param rows grouped by track and method
[[nodiscard]] benchmark_table benchmark_tables(const std::vector<benchmark_row>& rows);
[[nodiscard]] std::string benchmark_markdown(const benchmark_table& table);
/// A self-contained page whose columns can be sorted.
[[nodiscard]] std::string benchmark_html(const benchmark_table& table);

/// The critical value q(0.05) of Nemenyi's test for `methods` methods. This value is the 0.95 quantile of the
/// studentized range with infinitely many degrees of freedom, divided by the square root of 2. @pre methods >= 2
[[nodiscard]] double nemenyi_critical_value(std::size_t methods);

} // namespace mneme
