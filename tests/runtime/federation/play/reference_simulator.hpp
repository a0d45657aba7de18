/// reference_simulator: simulates a federation one client at a time, when its event is due, directly from the
/// definitions. It computes nothing in advance, and iterates over a list of all clients at every step.
#pragma once
#include "runtime/federation/run_records.hpp"
#include "runtime/federation/run_report.hpp"
#include "tests/runtime/federation/play/toy_federation.hpp"
namespace mneme::test {

/// Observable results of a run.
struct run_outcome {
  run_report report{};
  std::vector<event_record> events{};
  std::vector<evaluation_record> evaluations{};
  std::vector<std::uint64_t> models{}; ///< After each server step.
  archive::buffer checkpoint{};        ///< The newest one of a played run, including the server's state.
};

/// Returns null if two events at the same time have no defined order: a client joined or left when an upload arrived.
/// For a federation that can no longer deliver anything, the outcome is only that it failed.
[[nodiscard]] std::optional<run_outcome> simulated(const toy_federation& toy);

} // namespace mneme::test
