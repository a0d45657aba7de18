/// schema: JSON schema of scenarios, for completion and checks in editors.
#pragma once
#include <string>
namespace mneme {

/// JSON schema (draft 7) of all keys: types, ranges, words, meanings, defaults, and the keys of each method and model.
/// The schema does not cover combinations of keys, files, or values set in other files.
[[nodiscard]] std::string scenario_schema_text();

} // namespace mneme
