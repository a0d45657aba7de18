/// doctor_facts: more machine_facts, for `mneme doctor`.
#pragma once
#include "actors/run/machine_facts.hpp"
namespace mneme {

/// How many threads a run takes, and how many one operation of LibTorch would share.
[[nodiscard]] machine_facts thread_facts();
/// Memory of the machine, and what the process may take of it.
[[nodiscard]] machine_facts memory_facts();
/// Devices, as worker.device = "auto" sees them.
[[nodiscard]] machine_facts accelerator_facts();
/// Each data set, and the folders of its files or that they are missing.
[[nodiscard]] machine_facts data_facts();

} // namespace mneme
