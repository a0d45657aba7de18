/// suggested_name: what a name of a key or a metric that no run has may have been meant to be.
#pragma once
#include <string>
#include <vector>
namespace mneme {

/// "did you mean 'rounds.cohort'?", where `word` is a known name without its section, nearly a known name or nearly the
/// last part of one, or a part of one; else "expected one of ..." with at most a dozen names, or `otherwise`.
[[nodiscard]] std::string name_suggestion(const std::string& word, const std::vector<std::string>& known,
                                          const std::string& otherwise = {});

} // namespace mneme
