/// second_view: trainings whose steps contain every row twice, each time with its own augmentation.
#pragma once
#include "runtime/base/tuning.hpp"
#include "runtime/method/jobs.hpp"
namespace mneme {

/// Makes every step of the job contain its own rows a second time: the replayed rows of a step are its own rows, in the
/// same order. Augmentation, noise and dropout of the second view have their own random draws. The step loss is the
/// mean over the rows of both views. @pre the job has its rows, their annotations and the number of rows per step
inline void add_second_view(train_job& job) {
  job.replay = {.samples = job.samples, .annotations = job.annotations};
  job.options.replay_rows = job.options.batch_rows > 0 ? job.options.batch_rows : tuning::full_batch_rows;
  job.options.replay_short_last = true;
}

/// True for jobs of add_second_view(): the replayed rows are the same list as the job's own rows.
[[nodiscard]] inline bool has_second_view(const train_job& job) noexcept {
  return job.options.replay_short_last && job.samples.rows && job.replay.samples.rows == job.samples.rows;
}

} // namespace mneme
