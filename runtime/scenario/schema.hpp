/// scenario_schema: what a scenario may say, as a JSON schema from which editors complete and check.
#pragma once
#include <string>
namespace mneme {

/// A JSON schema (draft 7) made from the key tables: types, ranges, words, own keys of each method and model, meanings
/// and defaults. It says nothing of combinations of keys, of files, nor of what another file says.
[[nodiscard]] std::string scenario_schema_text();

} // namespace mneme
