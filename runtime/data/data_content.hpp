/// data_content: a digest of a data set as it was loaded, which tells later whether a run still has the same rows.
#pragma once
#include "runtime/base/digest.hpp"
#include "runtime/data/dataset.hpp"
namespace mneme {

/// All that a run reads: rows, labels, domains, numbers of rows, classes, tokens and constants of both splits.
[[nodiscard]] digest128 data_content(const raw_data& data);

} // namespace mneme
