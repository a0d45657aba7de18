/// reference_simulator: a federation simulated one client at a time, when its event comes, straight from the
/// definitions of the design. It computes nothing ahead, keeps every client in one list and looks through all of them
/// at every step.
#pragma once
#include "runtime/federation/run_records.hpp"
#include "runtime/federation/run_report.hpp"
#include "tests/runtime/federation/play/toy_federation.hpp"
namespace mneme::test {

/// What can be told of a run from outside.
struct run_outcome {
  run_report report{};
  std::vector<event_record> events{};
  std::vector<evaluation_record> evaluations{};
  std::vector<std::uint64_t> models{}; ///< After each server step.
  archive::buffer checkpoint{};        ///< The newest of a play, with the server's part.
};

/// Null where two things that no rule orders happened at one time: clients came or went just as an upload arrived. Of a
/// federation in which nothing is delivered any more, that it has failed, and no more.
[[nodiscard]] std::optional<run_outcome> simulated(const toy_federation& toy);

} // namespace mneme::test
