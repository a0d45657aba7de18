/// player: plays a federation against peers that answer in any order, are cut off at any step, and go on.
#pragma once
#include "runtime/federation/federation.hpp"
#include "tests/runtime/federation/play/reference_simulator.hpp"
#include "tests/runtime/federation/play/toy_shard.hpp"
namespace mneme::test {

struct play_style {
  std::uint64_t seed = 0;
  bool in_order = true;   ///< Peers answer in turn, and in one piece; else in any order, and in pieces.
  double cut_off = 0.0;   ///< Chance, at each step, that all is lost but the newest checkpoint.
  double lose_host = 0.0; ///< Chance, at each step, that the host of a shard is lost; another one takes the shard over.
  double stop = 0.0;      ///< Chance, at each step, that the run is asked to stop; it goes on from where it did.
};

/// Plays to the end. Throws broken_rule where the federation asks for what makes no sense, or stops asking.
[[nodiscard]] run_outcome played(const toy_federation& toy, const play_style& style);

} // namespace mneme::test
