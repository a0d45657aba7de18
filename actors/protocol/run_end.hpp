/// run_end: the outcome of a run.
#pragma once
#include "runtime/base/archive.hpp"
#include <string>
namespace mneme {

enum class run_outcome : std::uint8_t { done, failed, bad_input, interrupted };
struct run_end {
  run_outcome outcome = run_outcome::failed;
  std::string reason = "it ended without giving a reason"; ///< Error of the run; empty if there is none.
  void persist(archive& state) { state(outcome)(reason); }
};

} // namespace mneme
