/// suggested_name: suggests a name for a misspelled key or metric.
#pragma once
#include <string>
#include <vector>
namespace mneme {

/// Returns "did you mean 'rounds.cohort'?" if `word` is similar to a known name or to its last part, or is contained in
/// it. Otherwise returns "expected one of ..." if there are at most twelve names, else `otherwise`.
[[nodiscard]] std::string name_suggestion(const std::string& word, const std::vector<std::string>& known,
                                          const std::string& otherwise = {});

} // namespace mneme
