/// suggested_name: suggestion for a misspelled name of a key or metric.
#pragma once
#include <string>
#include <vector>
namespace mneme {

/// Returns "did you mean 'rounds.cohort'?" if `word` is similar to a known name, to its last part, or is a part of it.
/// Otherwise "expected one of ..." with at most twelve names, or `otherwise`.
[[nodiscard]] std::string name_suggestion(const std::string& word, const std::vector<std::string>& known,
                                          const std::string& otherwise = {});

} // namespace mneme
