/// scenario_schema: JSON schema of scenarios, for completion and checks in editors.
#pragma once
#include <string>
namespace mneme {

/// JSON schema (draft 7) generated from the key tables: types, ranges, words, keys of each method and model, meanings
/// and defaults. It does not check combinations of keys, files, or values set in other files.
[[nodiscard]] std::string scenario_schema_text();

} // namespace mneme
