/// suggestions: suggests the intended name for an unknown key or section.
#pragma once
#include "runtime/scenario/sections.hpp"
namespace mneme {

/// Error for an unknown key: "unknown key 'cohort' in [clients]; did you mean [rounds] cohort?".
[[nodiscard]] std::string unknown_key_text(const std::string& key, const section& in,
                                           const std::vector<section>& sections);
/// Error for an unknown section: "unknown section [rouns]; did you mean [rounds]?".
[[nodiscard]] std::string unknown_section_text(const std::string& name, const std::vector<section>& sections);

/// Names of all models (section "model") or methods ("strategy") that have a key of this name.
[[nodiscard]] std::vector<std::string> suggest_owners(const std::string& key, const std::string& section);

} // namespace mneme
