/// Loads a scenario given as TOML text, without running it.
#pragma once
#include "actors/run/load_world.hpp"
#include "runtime/scenario/read.hpp"
#include "tests/support/scratch.hpp"
#include <catch2/catch_test_macros.hpp>
#include <fstream>
#include <string>
namespace mneme::test {

/// Everything a run of `toml` reads; how it is laid out on threads is the caller's. Fails the test if it is refused.
inline std::shared_ptr<world> loaded(const std::string& toml) {
  const scratch_folder folder;
  const auto file = folder.path() / "test.toml";
  std::ofstream(file) << toml;
  const auto read = read_scenario(file, {});
  REQUIRE(read);
  auto made = load_world(read->value);
  REQUIRE(made);
  return *made;
}

} // namespace mneme::test
