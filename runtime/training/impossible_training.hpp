/// impossible_training: what no training job may ask for.
#pragma once
#include "runtime/method/jobs.hpp"
namespace mneme {

/// Why the job cannot be trained, in words that name what was found and what is expected; empty: it can be. Labels are
/// looked at as rows are read.
[[nodiscard]] std::string why_impossible(const train_job& job);

/// Why rows that a job is given are not those of their data set, in such words; empty: they are. They come from other
/// processes, and from checkpoints.
[[nodiscard]] std::string wrong_rows(const work& request);
[[nodiscard]] std::string wrong_rows(const sample_view& samples);

/// Why weights that a job is given are not those of its net, in such words; empty: they are, or are not read. They come
/// from other processes.
[[nodiscard]] std::string wrong_weights(const work& request);

} // namespace mneme
