/// input_files: digests of the files that a scenario names, so that a resumed run can report a changed file.
#pragma once
#include "runtime/results/run_directory.hpp"
#include "runtime/settings/scenario.hpp"
namespace mneme {

/// Digests of files by scenario key; size and time stamp of the files of a public data set by path.
struct input_files {
  std::map<std::string, std::string> named{}, data{};
};
[[nodiscard]] input_files input_files_of(const scenario& settings);

/// Returns one diagnostic for each input file of the scenario whose content has changed since the run began.
[[nodiscard]] diagnostics check_input_files(const run_origin& began, const scenario& settings);

/// Lists data files whose size or time has changed: "; changed: /data/train.gz, /data/test.gz"; "" if none has.
[[nodiscard]] std::string find_changed_data_files(const run_origin& began, const scenario& settings);

} // namespace mneme
