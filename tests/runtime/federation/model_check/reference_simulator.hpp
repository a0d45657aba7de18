/// reference_simulator: simulates a federation directly from the definitions, one client at a time, when its event is
/// due. It computes nothing in advance and iterates over a list of all clients at every step.
#pragma once
#include "runtime/federation/run_records.hpp"
#include "runtime/federation/run_report.hpp"
#include "tests/runtime/federation/model_check/toy_federation.hpp"
namespace mneme::test {

/// Observable results of a run.
struct run_outcome {
  run_report report{};
  std::vector<event_record> events{};
  std::vector<evaluation_record> evaluations{};
  std::vector<std::uint64_t> models{}; ///< After each server step.
  archive::buffer checkpoint{};        ///< Newest one of a played run, with the server's state.
};

/// Simulates a run. Returns null if two events at the same time have no defined order: a client joined or left when an
/// upload arrived. If the federation can no longer deliver anything, the outcome contains only this failure.
[[nodiscard]] std::optional<run_outcome> simulated(const toy_federation& toy);

} // namespace mneme::test
