/// machine_info: properties of this machine that affect results and speed, for summaries and `mneme doctor`.
#pragma once
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>
namespace mneme {

/// Pairs of a name and a printable value.
using machine_info = std::vector<std::pair<std::string, std::string>>;

/// Processor name, number of cores, and the instruction sets that select kernels.
[[nodiscard]] machine_info processor_info();
/// Versions of the libraries for computation and communication.
[[nodiscard]] machine_info library_info();

/// Returns NAME's value from a line "NAME: value" in a file such as those in /proc; empty if there is no such line.
[[nodiscard]] std::string value_in(const char* file, const std::string& name);
/// Formats the environment variables that are set: "MKL_CBWR=AVX2, OMP_NUM_THREADS=1"; "none" if none is set.
[[nodiscard]] std::string variables_set(std::initializer_list<const char*> names);

} // namespace mneme
