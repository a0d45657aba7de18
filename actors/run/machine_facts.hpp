/// machine_facts: what decides how this machine computes, as summaries and `mneme doctor` tell it.
#pragma once
#include <initializer_list>
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

/// What stands behind "NAME :" in a file of lines "name: value", as /proc has them; empty if there is no such line.
[[nodiscard]] std::string value_in(const char* file, const std::string& name);
/// "MKL_CBWR=AVX2, OMP_NUM_THREADS=1": those of the variables that are set; "none".
[[nodiscard]] std::string variables_set(std::initializer_list<const char*> names);

} // namespace mneme
