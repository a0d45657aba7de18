/// public_rows: training rows that belong to no client, for training before the first round.
#pragma once
#include "runtime/data/task_stream.hpp"
namespace mneme {

/// Moves a share (partition.public_share) of the rows of each task and label from `train` to `open`: the nearest
/// integer, drawn by the seed; at least one row of a label remains. A row that several tasks use, each with its own
/// transform, is public in all of them or in none.
/// @param train labeled data set that contains the rows of the tasks
void hold_out_public_rows(const scenario& from, const dataset& train, std::vector<task_rows>& tasks);

} // namespace mneme
