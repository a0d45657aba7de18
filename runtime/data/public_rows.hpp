/// public_rows: training rows that no client holds, for what a method trains before any client speaks.
#pragma once
#include "runtime/data/task_stream.hpp"
namespace mneme {

/// Moves a share (partition.public_share) of the rows of each task and label from `train` to `open`: the nearest whole
/// number of them, drawn by the seed, but one row of a label stays. A row of the file that several tasks show, each in
/// its own way, is public in all of them or in none.
/// @param train whose rows the tasks list, labelled
void hold_out_public_rows(const scenario& from, const dataset& train, std::vector<task_rows>& tasks);

} // namespace mneme
