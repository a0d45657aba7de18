/// inference: jobs that read all rows once with fixed weights (extract, statistics, evaluate), and compute jobs.
#pragma once
#include "runtime/method/jobs.hpp"
#include "runtime/training/feature_store.hpp"
#include "runtime/training/image_store.hpp"
#include "runtime/training/program_batch.hpp"
namespace mneme {

/// Rows per block of a pass. The number depends on the net only. It is tuning::block_rows_max, or a smaller power of
/// two for a large net.
[[nodiscard]] std::int64_t block_rows_of(const model& net);

/// Runs a job. @param store cache for features of frozen nets; null: none @param monitor may stop the job between two
/// blocks, which throws std::runtime_error with interrupted_text; null: the job is not stopped
[[nodiscard]] extract_output run_inference(const extract_job& job, image_store& images, feature_store* store = nullptr,
                                           slice_monitor* monitor = nullptr);
[[nodiscard]] statistics_output run_inference(const statistics_job& job, image_store& images,
                                              feature_store* store = nullptr, slice_monitor* monitor = nullptr);
[[nodiscard]] evaluate_output run_inference(const evaluate_job& job, image_store& images,
                                            feature_store* store = nullptr, slice_monitor* monitor = nullptr);
/// Runs a job on the device, to which its inputs are copied.
[[nodiscard]] compute_output run_compute(const compute_job& job, const at::Device& device);

} // namespace mneme
