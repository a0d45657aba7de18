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

/// A diagnostic for each file that a key names and whose content is another than when the run began.
[[nodiscard]] diagnostics changed_inputs(const run_origin& began, const scenario& settings);

/// What has changed in the data set: "; /data/train.gz has changed", or "" if nothing is known of its files.
[[nodiscard]] std::string changed_data_files(const run_origin& began, const scenario& settings);

} // namespace mneme
