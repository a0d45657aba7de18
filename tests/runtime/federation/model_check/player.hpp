/// player: plays a federation with peers that respond in any order and are interrupted and resumed at any step.
#pragma once
#include "runtime/federation/federation.hpp"
#include "tests/runtime/federation/model_check/reference_simulator.hpp"
#include "tests/runtime/federation/model_check/toy_shard.hpp"
namespace mneme::test {

struct play_style {
  std::uint64_t seed = 0;
  bool in_order = true;   ///< true: peers reply in turn, in one message; false: in any order, in parts.
  double cut_off = 0.0;   ///< Probability per step that all state but the newest checkpoint is lost.
  double lose_host = 0.0; ///< Probability per step that a shard's host is lost and another one takes over.
  double stop = 0.0;      ///< Probability per step that the run is stopped and then resumed.
};

/// Plays to the end. Throws broken_rule if the federation sends an invalid request, or none although one is due.
[[nodiscard]] run_outcome played(const toy_federation& toy, const play_style& style);

} // namespace mneme::test
