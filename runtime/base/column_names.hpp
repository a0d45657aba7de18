/// column_names: finds the intended column name for a misspelled one.
#pragma once
#include <string>
#include <string_view>
#include <vector>
namespace mneme::csv {

/// True if the names are equal up to case.
[[nodiscard]] bool same_but_case(std::string_view a, std::string_view b);

/// The name in `known` with the smallest edit distance to `name`, ignoring case. Returns "" if none is close.
[[nodiscard]] std::string similar_name(std::string_view name, const std::vector<std::string>& known);

/// Returns the name in `known` that `name` misspells, or "". Misspellings differ in case, blanks and underscores, by
/// one inserted or omitted letter, or by two swapped letters. For names in `absent`, a suffix "id", "index" or "number"
/// may be added. A name with a replaced letter counts as another word ("raw" for "row", "mask" for "task").
/// @param absent names in `known` that the header does not contain
[[nodiscard]] std::string misspelt_name(std::string_view name, const std::vector<std::string>& known,
                                        const std::vector<std::string>& absent);

} // namespace mneme::csv
