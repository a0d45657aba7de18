/// doctor_facts: additional facts about the machine for `mneme doctor`.
#pragma once
#include "actors/run/machine_info.hpp"
namespace mneme {

/// Number of threads of a run, and of one LibTorch operation.
[[nodiscard]] machine_info thread_facts();
/// Memory of the machine, and the limit of this process.
[[nodiscard]] machine_info memory_facts();
/// Devices that worker.device = "auto" can use.
[[nodiscard]] machine_info accelerator_facts();
/// Each data set with the folders of its files, or a text that they are missing.
[[nodiscard]] machine_info data_facts();

} // namespace mneme
