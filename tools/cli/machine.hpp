/// machine: what decides how this machine computes, as `mneme doctor` tells it.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>
namespace mneme {

/// A name and what is known of it, in words.
using machine_facts = std::vector<std::pair<std::string, std::string>>;

/// The processor, its cores, and the instruction sets that kernels are chosen by.
[[nodiscard]] machine_facts processor_facts();
/// Libraries that compute or carry messages, with their versions.
[[nodiscard]] machine_facts library_facts();
/// How many threads a run takes, and how many one operation of LibTorch would share.
[[nodiscard]] machine_facts thread_facts();
/// Memory of the machine, and what the process may take of it.
[[nodiscard]] machine_facts memory_facts();
/// Devices, as worker.device = "auto" sees them.
[[nodiscard]] machine_facts accelerator_facts();
/// Each data set, and the folders of its files or that they are missing.
[[nodiscard]] machine_facts data_facts();

} // namespace mneme
