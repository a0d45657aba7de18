/// interrupted_runs: interrupts and resumes runs, and compares their results.
#pragma once
#include "actors/run/simulation.hpp"
#include "runtime/scenario/read.hpp"
#include "tests/support/scenario_text.hpp"
#include "tests/support/scratch.hpp"
#include <catch2/catch_test_macros.hpp>
#include <sstream>
namespace mneme::test {

namespace fs = std::filesystem;

/// Scenario in its own folder, which can be run under several names.
class workshop {
public:
  explicit workshop(const scenario_text& scenario) { write_file(folder_.path() / "test.toml", scenario.text()); }
  [[nodiscard]] fs::path path(const std::string& name) const { return folder_.path() / name; }

  run_summary run(const std::string& name, run_options options = {}, const overrides& over = {}) const {
    const auto read = read_scenario(path("test.toml"), over);
    if (!read)
      FAIL("scenario refused: " << diagnostic_text(read.error().front()));
    options.out = path(name);
    auto ended = run_simulation(read->value, set_up(options));
    if (!ended)
      FAIL("run refused: " << diagnostic_text(ended.error().front()));
    return *ended;
  }
  run_summary resume(const std::string& name, const run_options& options = {}) const {
    auto ended = resume_simulation(path(name), set_up(options));
    if (!ended)
      FAIL("resume refused: " << diagnostic_text(ended.error().front()));
    REQUIRE(*ended);
    return **ended;
  }
  [[nodiscard]] std::string refusal(const std::string& name) const {
    auto ended = resume_simulation(path(name), set_up({}));
    return ended ? "" : diagnostic_text(ended.error().front());
  }
  [[nodiscard]] std::vector<fs::path> checkpoints(const std::string& name) const {
    std::vector<fs::path> paths;
    for (const auto& entry : fs::directory_iterator(path(name) / "checkpoint"))
      if (entry.path().extension() == ".checkpoint")
        paths.push_back(entry.path());
    std::sort(paths.begin(), paths.end());
    return paths;
  }

private:
  static run_options set_up(run_options options) {
    options.style = progress_style::quiet;
    options.threads = options.threads ? options.threads : 2;
    options.draw_accuracy = [](const std::string& title, std::span<const evaluation_record> evaluations) {
      return title + ": " + std::to_string(evaluations.size()) + " evaluations";
    };
    return options;
  }
  scratch_folder folder_;
};

/// Number of workers before and after the interruption. It affects batching but must not affect anything else.
enum class workers { alike, others };

/// Summary without values that depend on the clock or the machine.
inline std::string timeless(const std::string& summary, workers were) {
  std::string kept;
  std::istringstream lines(summary);
  for (std::string line; std::getline(lines, line);) {
    bool of_time = false;
    for (const auto* key :
         {"wall_seconds", "cpu_seconds", "client_rounds_per_second", "worker_busy_share", "peak_rss_bytes"})
      of_time = of_time || line.find(std::string("\"") + key + "\"") != line.npos;
    for (const auto* key : {"fused_width_mean", "trace_digest"})
      of_time = of_time || (were == workers::others && line.find(std::string("\"") + key + "\"") != line.npos);
    if (!of_time)
      kept += line + "\n";
  }
  return kept;
}

inline void check_equal_files(const fs::path& a, const fs::path& b, workers were = workers::alike) {
  for (const auto* name :
       {"scenario.toml", "metrics.jsonl", "events.csv", "accuracy_matrix.csv", "accuracy_per_class.csv", "accuracy.svg",
        "timeline.jsonl", "model.safetensors", "partition.csv", "models/task_1.safetensors",
        "models/task_2.safetensors", "models/task_3.safetensors"}) {
    CAPTURE(name);
    CHECK(fs::exists(a / name) == fs::exists(b / name));
    CHECK(content_of(a / name) == content_of(b / name));
  }
  CHECK(timeless(content_of(a / "summary.json"), were) == timeless(content_of(b / "summary.json"), were));
}

/// Interrupts the run after every `events_max` events until it is done. Returns the number of interruptions.
inline int run_in_pieces(const workshop& shop, const std::string& name, run_options options, workers are,
                         const overrides& over = {}) {
  int pieces = 0;
  auto summary = shop.run(name, options, over);
  while (summary.status == "interrupted") {
    CHECK(summary.resume_from == shop.path(name).string());
    ++pieces;
    if (are == workers::others)
      options.threads = 1 + pieces % 3;
    summary = shop.resume(name, options);
  }
  CHECK(summary.status == "done");
  return pieces;
}

} // namespace mneme::test
