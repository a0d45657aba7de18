/// public_rows: training rows that belong to no client, for training before the first round.
#pragma once
#include "runtime/data/task_stream.hpp"
namespace mneme {

/// Moves the share partition.public_share of the rows of each task and label from `train` to `open`. The number of rows
/// is rounded to the nearest integer, and at least one row of each label remains. The seed determines the rows. A file
/// row that several tasks use under different transforms is public in all of them or in none.
/// @param train labeled data set that contains the tasks' rows
void hold_out_public_rows(const scenario& from, const dataset& train, std::vector<task_rows>& tasks);

} // namespace mneme
