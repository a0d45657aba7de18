/// memory_estimate: estimated memory of a population and its cohort, before anything is allocated.
#pragma once
#include "runtime/base/available_memory.hpp"
#include "runtime/base/diagnostic.hpp"
#include "runtime/settings/scenario.hpp"
namespace mneme {

/// Part of a run's memory: the key that determines its size, and its estimated bytes.
struct memory_part {
  std::string name{}; ///< "clients"
  std::string key{};  ///< "clients.count"; "": no particular key
  double bytes = 0.0;
};

/// Estimates the memory of idle clients and of busy clients. The estimate excludes client memories of the method, whose
/// size is unknown in advance; clients.memory_limit bounds them.
[[nodiscard]] std::vector<memory_part> estimate_client_memory(const scenario& settings);

/// Formats a size, such as "1.5 GiB" or "310 MiB".
[[nodiscard]] std::string bytes_text(double bytes);

/// Returns an error if the clients alone need more memory than is available.
[[nodiscard]] diagnostics check_client_memory(const scenario& settings, const memory_budget& room);

} // namespace mneme
