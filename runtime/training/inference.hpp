/// inference: jobs that look at all rows once under fixed weights: extract, statistics, evaluate.
#pragma once
#include "runtime/method/jobs.hpp"
#include "runtime/training/feature_store.hpp"
#include "runtime/training/image_store.hpp"
#include "runtime/training/program_batch.hpp"
namespace mneme {

/// A pass goes over its rows in order, in blocks: they follow from the net alone. At most tuning::block_rows_max rows;
/// fewer, a power of two of them, where the net is large.
[[nodiscard]] std::int64_t block_rows_of(const model& net);

/// `store`: where features of frozen nets are remembered; null: nowhere. Where `watch` ends the run between two blocks,
/// std::runtime_error with interrupted_text is thrown; null: nobody does.
[[nodiscard]] extract_output run_inference(const extract_job& job, image_store& images, feature_store* store = nullptr,
                                           slice_watch* watch = nullptr);
[[nodiscard]] statistics_output run_inference(const statistics_job& job, image_store& images,
                                              feature_store* store = nullptr, slice_watch* watch = nullptr);
[[nodiscard]] evaluate_output run_inference(const evaluate_job& job, image_store& images,
                                            feature_store* store = nullptr, slice_watch* watch = nullptr);
[[nodiscard]] compute_output run_compute(const compute_job& job, const at::Device& device);

} // namespace mneme
