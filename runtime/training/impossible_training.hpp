/// impossible_training: what no training job may ask for.
#pragma once
#include "runtime/method/jobs.hpp"
namespace mneme {

/// Why the job cannot be trained, in words that name what was found and what is expected; empty: it can be. Labels are
/// looked at as rows are read.
[[nodiscard]] std::string why_impossible(const train_job& job);

} // namespace mneme
