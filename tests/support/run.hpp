/// run: runs a scenario given as TOML text in a temporary folder.
#pragma once
#include "actors/run/simulation.hpp"
#include "runtime/scenario/read.hpp"
#include "tests/support/scratch.hpp"
#include <catch2/catch_test_macros.hpp>
#include <filesystem>
#include <fstream>
#include <string>
namespace mneme::test {

struct finished_run {
  run_summary summary{};
  std::string events{}; ///< events.csv if the run is traced
  std::string metrics{};
  std::string model{};
  std::string scenario{};
};

struct run_setup {
  overrides over{};
  std::int64_t threads = 2;
  bool trace = false;
  const std::atomic<int>* interrupts = nullptr;
};

/// Runs `toml` and reads the results. Fails the test if the scenario is invalid.
inline finished_run run_toml(const std::string& toml, const run_setup& setup = {}) {
  const scratch_folder folder;
  const auto file = folder.path() / "test.toml";
  std::ofstream(file) << toml;
  const auto read = read_scenario(file, setup.over);
  if (!read) {
    std::string text;
    for (const auto& diagnostic : read.error())
      text += diagnostic_text(diagnostic) + "\n";
    FAIL("scenario refused:\n" << text);
  }
  const auto out = folder.path() / "out";
  auto ended = run_simulation(read->value, {.out = out,
                                            .threads = setup.threads,
                                            .style = progress_style::quiet,
                                            .trace = setup.trace,
                                            .interrupts = setup.interrupts});
  if (!ended)
    FAIL("run refused: " << diagnostic_text(ended.error().front()));
  return {.summary = std::move(*ended),
          .events = content_of(out / "events.csv"),
          .metrics = content_of(out / "metrics.jsonl"),
          .model = content_of(out / "model.safetensors"),
          .scenario = content_of(out / "scenario.toml")};
}

/// Errors of the scenario `toml` and its data, one per line, with locations in "test.toml".
inline std::string refusal_of(const std::string& toml) {
  const scratch_folder folder;
  const auto file = folder.path() / "test.toml";
  std::ofstream(file) << toml;
  const auto read = read_scenario(file, {});
  const auto wrong = read ? check_against_data(read->value) : read.error();
  std::string text;
  for (const auto& found : wrong)
    text += diagnostic_text(found) + "\n";
  const auto lead = folder.path().string() + "/";
  for (auto at = text.find(lead); at != std::string::npos; at = text.find(lead))
    text.erase(at, lead.size());
  return text;
}

} // namespace mneme::test
