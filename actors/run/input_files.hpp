/// input_files: the content of the files that a scenario names, so that a resumed run names the file that has changed.
#pragma once
#include "runtime/results/run_directory.hpp"
#include "runtime/settings/scenario.hpp"
namespace mneme {

/// Digests of files by the keys that name them, and size and time of the files of a public data set by path.
struct input_files {
  std::map<std::string, std::string> named{}, data{};
};
[[nodiscard]] input_files input_files_of(const scenario& settings);

/// One diagnostic for each input file of the scenario whose content has changed since the run began.
[[nodiscard]] diagnostics changed_inputs(const run_origin& began, const scenario& settings);

/// Data files whose size or time has changed: "; changed: /data/train.gz, /data/test.gz", or "" if none has.
[[nodiscard]] std::string changed_data_files(const run_origin& began, const scenario& settings);

} // namespace mneme
