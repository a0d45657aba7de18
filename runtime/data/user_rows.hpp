/// user_rows: checks and combines rows of user data from any source.
#pragma once
#include "runtime/base/diagnostic.hpp"
#include "runtime/data/dataset.hpp"
#include "runtime/settings/scenario.hpp"
#include <functional>
namespace mneme {

inline constexpr std::int64_t own_classes_max = 100'000;
/// Maximum number of diagnostics for one kind of error.
inline constexpr std::size_t own_diagnostics_max = 20;

/// Names of the arrays for data.name = "arrays".
[[nodiscard]] const std::vector<std::string>& array_names();

/// Labels and domains of one part (train or test) of user data, in file order.
struct user_part {
  std::vector<std::int32_t> labels{};  ///< [N]
  std::vector<std::int32_t> domains{}; ///< [N]; empty if there is one domain
};

/// Properties of user data that are known before rows are combined.
struct user_classes {
  std::string where{}; ///< File or folder, for diagnostics.
  std::int64_t count = 0;
  std::vector<std::string> names{};   ///< [count]; empty if classes have only numbers
  std::vector<std::string> domains{}; ///< Names by domain number; empty if there is one domain.
};

/// Row numbers of both parts of a random split, ascending. The numbers refer to the part that was split.
struct random_split {
  std::vector<std::int64_t> train{}, test{};
};

/// Checks that data.test_share is 0 for data with a test part, and above 0 for data without one.
[[nodiscard]] diagnostics validate_test_share(bool has_test, const data_section& data, const std::string& where);

/// Draws `share` of the rows of each class and domain as test rows, determined by the seed. Of two or more rows, at
/// least one is a test row. Fails if a class has only one row.
[[nodiscard]] expected<random_split> split_off_test_rows(const user_part& rows, double share, std::uint64_t seed,
                                                         const user_classes& classes);

/// Reports every class without rows in one of the parts.
[[nodiscard]] diagnostics absent_classes(const user_part& train, const user_part& test, const user_classes& classes);

/// Reports duplicate and unprintable names. A name must be UTF-8 with 1 to 200 bytes and without control characters.
[[nodiscard]] diagnostics validate_names(const std::vector<std::string>& names, const std::string& where);

/// Combines rows in memory. @param test test rows; if there are none, they are drawn from `train` @param tokens see
/// raw_data
[[nodiscard]] expected<raw_data> assemble_rows(image_table train, image_table test, const user_classes& classes,
                                               std::int64_t tokens, const data_section& data, std::uint64_t seed);

/// Formats a class for messages: "class 3" or "class 'cat'".
[[nodiscard]] std::string class_text(const user_classes& classes, std::int64_t label);

} // namespace mneme
