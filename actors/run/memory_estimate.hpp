/// memory_estimate: what a population and its cohort take, known before anything of it is made.
#pragma once
#include "runtime/base/available_memory.hpp"
#include "runtime/base/diagnostic.hpp"
#include "runtime/settings/scenario.hpp"
namespace mneme {

/// A part of a run's memory, the key that decides it, and about how many bytes it takes.
struct memory_part {
  std::string name{}; ///< "clients"
  std::string key{};  ///< "clients.count"; "": no key in particular
  double bytes = 0.0;
};

/// Clients, as idle ones are kept, and those at work at a time. What a method's clients remember is not known before
/// they do; clients.memory_limit bounds it.
[[nodiscard]] std::vector<memory_part> memory_of_clients(const scenario& settings);

/// "1.5 GiB", "310 MiB"
[[nodiscard]] std::string bytes_text(double bytes);

/// What is wrong where the clients alone need more than there is; empty: nothing.
[[nodiscard]] diagnostics too_many_clients(const scenario& settings, const memory_room& room);

} // namespace mneme
