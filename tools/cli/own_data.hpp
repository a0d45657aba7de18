/// own_data: reads data named on the command line: a data set, or a path to user data.
#pragma once
#include "runtime/data/data_sources.hpp"
#include "runtime/scenario/read.hpp"
#include <optional>
namespace mneme {

struct own_data_look {
  data_section section{};        ///< Keys of [data] that read the data.
  expected<raw_data> rows{};     ///< The data, or all errors.
  bool has_no_test_part = false; ///< Then section.test_share has a default value.
  diagnostics warnings{};        ///< Settings that have no effect.
};

/// Keys that read `path`: a folder of images or .npy files, a file of arrays, or a CSV table. nullopt for other paths.
[[nodiscard]] std::optional<data_section> section_of_path(const std::filesystem::path& path);

/// Reads the data of `section` with `settings` applied; settings of other sections are ignored. Fails if a setting is
/// invalid.
[[nodiscard]] expected<own_data_look> look_at_data(data_section section, const overrides& settings);

/// Lines of [data] that locate the data.
[[nodiscard]] std::string data_lines(const data_section& data);

/// Removes locations in `file`, a temporary file that the user did not write.
[[nodiscard]] diagnostics without_places_in(const std::string& file, diagnostics problems);

} // namespace mneme
