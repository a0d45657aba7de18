/// data_content: digest of a loaded data set, with which a resumed run detects changed data.
#pragma once
#include "runtime/base/digest.hpp"
#include "runtime/data/dataset.hpp"
namespace mneme {

/// Digest of everything that a run reads: rows, labels, domains, row numbers, classes, tokens and normalization
/// constants of both splits.
[[nodiscard]] digest128 data_content(const raw_data& data);

} // namespace mneme
