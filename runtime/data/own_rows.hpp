/// own_rows: the rows of a user's own data, checked and put together alike whatever they come from.
#pragma once
#include "runtime/base/diagnostic.hpp"
#include "runtime/data/dataset.hpp"
#include "runtime/settings/scenario.hpp"
#include <functional>
namespace mneme {

inline constexpr std::int64_t own_classes_max = 100'000;
/// Data that are wrong everywhere are reported by their first findings.
inline constexpr std::size_t own_diagnostics_max = 20;

/// The arrays of data.name = "arrays".
[[nodiscard]] const std::vector<std::string>& array_names();

/// One part of own data, in its order.
struct own_part {
  std::vector<std::int32_t> labels{};  ///< [N]
  std::vector<std::int32_t> domains{}; ///< [N], or empty
};

/// What is known of own data before its rows are put together.
struct own_classes {
  std::string where{}; ///< The file or folder, for diagnostics.
  std::int64_t count = 0;
  std::vector<std::string> names{};   ///< [count], or empty: numbers
  std::vector<std::string> domains{}; ///< By number; empty: there is one.
};

/// Rows by number in the original part, ascending.
struct drawn_parts {
  std::vector<std::int64_t> train{}, test{};
};

/// Checks that data with a test part have data.test_share = 0, and others not.
[[nodiscard]] diagnostics wrong_test_share(bool has_test, const data_section& data, const std::string& where);

/// Draws `share` of the rows of each class and domain as test rows, at least one of two or more, by key from the seed.
/// Fails where a class has a single row.
[[nodiscard]] expected<drawn_parts> drawn_test_rows(const own_part& rows, double share, std::uint64_t seed,
                                                    const own_classes& classes);

/// Every class that has no row in one of the parts.
[[nodiscard]] diagnostics absent_classes(const own_part& train, const own_part& test, const own_classes& classes);

/// Names that reports can show, each once: UTF-8 of 1 to 200 bytes without control characters.
[[nodiscard]] diagnostics wrong_names(const std::vector<std::string>& names, const std::string& where);

/// Data whose rows are in memory. @param tables `test` without rows: drawn from `train`. @param tokens as in raw_data
[[nodiscard]] expected<raw_data> put_together(image_table train, image_table test, const own_classes& classes,
                                              std::int64_t tokens, const data_section& data, std::uint64_t seed);

/// "class 3" or "class 'cat'".
[[nodiscard]] std::string class_text(const own_classes& classes, std::int64_t label);

} // namespace mneme
