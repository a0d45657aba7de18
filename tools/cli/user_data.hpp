/// user_data: reads data that the command line names: a data set, or user data at a path.
#pragma once
#include "runtime/data/data_sources.hpp"
#include "runtime/scenario/read.hpp"
#include <optional>
namespace mneme {

struct user_data_report {
  data_section section{};        ///< Keys of [data] with which the data are read.
  expected<raw_data> rows{};     ///< The data, or all errors.
  bool has_no_test_part = false; ///< true: the data have no test part, so section.test_share is set to a default.
  diagnostics warnings{};        ///< Settings that have no effect.
};

/// Returns keys that read `path`: a folder of images or .npy files, a file of arrays, or a CSV table; nullopt for other
/// paths.
[[nodiscard]] std::optional<data_section> section_of_path(const std::filesystem::path& path);

/// Reads the data of `section` with `settings` applied. Ignores settings of other sections. Fails if a setting is
/// invalid.
[[nodiscard]] expected<user_data_report> inspect_data_section(data_section section, const overrides& settings);

/// Formats the lines of [data] that locate the data.
[[nodiscard]] std::string data_lines(const data_section& data);

/// Removes locations in `file`, a temporary file, from the messages, because the user did not write it.
[[nodiscard]] diagnostics without_places_in(const std::string& file, diagnostics problems);

} // namespace mneme
