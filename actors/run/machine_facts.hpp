/// machine_facts: properties of this machine that affect results and speed, for summaries and `mneme doctor`.
#pragma once
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>
namespace mneme {

/// Pairs of a name and a printable value.
using machine_facts = std::vector<std::pair<std::string, std::string>>;

/// Processor, number of cores, and the instruction sets by which kernels are chosen.
[[nodiscard]] machine_facts processor_facts();
/// Libraries for computation and communication, with versions.
[[nodiscard]] machine_facts library_facts();

/// Value of the line "NAME: value" in a file such as those in /proc; empty if there is none.
[[nodiscard]] std::string value_in(const char* file, const std::string& name);
/// Environment variables that are set, such as "MKL_CBWR=AVX2, OMP_NUM_THREADS=1"; "none" if there are none.
[[nodiscard]] std::string variables_set(std::initializer_list<const char*> names);

} // namespace mneme
