/// doctor_facts: additional facts about the machine for `mneme doctor`.
#pragma once
#include "actors/run/machine_facts.hpp"
namespace mneme {

/// Number of threads of a run, and of one LibTorch operation.
[[nodiscard]] machine_facts thread_facts();
/// Memory of the machine, and the limit of this process.
[[nodiscard]] machine_facts memory_facts();
/// Devices that worker.device = "auto" can use.
[[nodiscard]] machine_facts accelerator_facts();
/// Each data set with the folders of its files, or a text that they are missing.
[[nodiscard]] machine_facts data_facts();

} // namespace mneme
