/// job_validation: validates training jobs, rows and weights.
#pragma once
#include "runtime/method/jobs.hpp"
namespace mneme {

/// Returns why the job cannot be trained, with the value found and the value expected; empty if it can. Labels are
/// checked when rows are read.
[[nodiscard]] std::string validate_training_job(const train_job& job);

/// Returns why a job's rows are not rows of their data set; empty if they are. Jobs may come from other processes or
/// files.
[[nodiscard]] std::string validate_rows(const work& request);
[[nodiscard]] std::string validate_rows(const sample_view& samples);

/// Returns why a job's weights do not fit its net; empty if they fit or are not read. Jobs may come from other
/// processes.
[[nodiscard]] std::string validate_weights(const work& request);

} // namespace mneme
