/// own_data: the data that a command names: a data set, or a path to a user's own data.
#pragma once
#include "runtime/data/data_sources.hpp"
#include "runtime/scenario/read.hpp"
#include <optional>
namespace mneme {

struct own_data_look {
  data_section section{};        ///< The keys that lead there.
  expected<raw_data> rows{};     ///< What is read, or what is wrong with it.
  bool has_no_test_part = false; ///< So section.test_share was chosen here.
  diagnostics warnings{};        ///< Settings that have no effect.
};

/// The section that reads `path`: a folder of pictures or of .npy files, a file of arrays or a table. nullopt if the
/// path is none of them.
[[nodiscard]] std::optional<data_section> section_of_path(const std::filesystem::path& path);

/// Reads the data of `section`, changed by `settings`, of which those of other sections are left out. Fails where a
/// setting is wrong.
[[nodiscard]] expected<own_data_look> look_at_data(data_section section, const overrides& settings);

/// Lines of [data], as far as they lead to the rows.
[[nodiscard]] std::string data_lines(const data_section& data);

/// Removes the places in `file`, which no user has written.
[[nodiscard]] diagnostics without_places_in(const std::string& file, diagnostics problems);

} // namespace mneme
