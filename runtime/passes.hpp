/// passes: jobs that look at all rows once under fixed weights: extract, statistics, evaluate.
#pragma once
#include "runtime/image_store.hpp"
#include "runtime/jobs.hpp"
namespace mneme {

/// A pass goes over its rows in order, in blocks of this many: the blocks, and so the bits, follow from the job alone.
inline constexpr std::int64_t block_rows = 128;

[[nodiscard]] extract_output run_pass(const extract_job& job, image_store& images);
[[nodiscard]] statistics_output run_pass(const statistics_job& job, image_store& images);
[[nodiscard]] evaluate_output run_pass(const evaluate_job& job, image_store& images);

} // namespace mneme
