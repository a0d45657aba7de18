/// public_rows: training rows that no client has, for training before the first round.
#pragma once
#include "runtime/data/task_stream.hpp"
namespace mneme {

/// Moves a share (partition.public_share) of each task's and label's rows from `train` to `open`: the nearest integer,
/// drawn by the seed; at least one row of a label stays. A row that several tasks use, each with its own transform, is
/// public in all of them or in none.
/// @param train labeled data set whose rows the tasks list
void hold_out_public_rows(const scenario& from, const dataset& train, std::vector<task_rows>& tasks);

} // namespace mneme
