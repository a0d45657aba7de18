/// passes: jobs that look at all rows once under fixed weights: extract, statistics, evaluate.
#pragma once
#include "runtime/image_store.hpp"
#include "runtime/jobs.hpp"
namespace mneme {

/// A pass goes over its rows in order, in blocks: they follow from the net alone. At most this many rows; fewer, a
/// power of two of them, where the net is large.
inline constexpr std::int64_t block_rows_max = 128;
[[nodiscard]] std::int64_t block_rows_of(const model& net);

[[nodiscard]] extract_output run_pass(const extract_job& job, image_store& images);
[[nodiscard]] statistics_output run_pass(const statistics_job& job, image_store& images);
[[nodiscard]] evaluate_output run_pass(const evaluate_job& job, image_store& images);

} // namespace mneme
