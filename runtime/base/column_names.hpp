/// column_names: finds the column name that a misspelt one probably means.
#pragma once
#include <string>
#include <string_view>
#include <vector>
namespace mneme::csv {

/// True if the names differ at most in capital letters.
[[nodiscard]] bool same_but_case(std::string_view a, std::string_view b);

/// The name of `known` with the smallest edit distance to `name`, or equal to it up to case; "" if none is close.
[[nodiscard]] std::string similar_name(std::string_view name, const std::vector<std::string>& known);

/// The name of `known` that `name` is a spelling of, "" if none. Such spellings differ in capital letters, blanks and
/// underscores, by one letter more or less, or by two letters swapped; of the names in `absent` also by "id", "index"
/// or "number" at the end. A name with a replaced letter counts as a different word ("raw" for "row", "mask" for
/// "task").
/// @param absent those of `known` that the header does not have
[[nodiscard]] std::string misspelt_name(std::string_view name, const std::vector<std::string>& known,
                                        const std::vector<std::string>& absent);

} // namespace mneme::csv
