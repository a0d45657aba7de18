/// own_data: a path that a user names, looked at as data of one's own.
#pragma once
#include "runtime/data/data_sources.hpp"
#include <optional>
namespace mneme {

struct own_data_look {
  data_section section{};        ///< The keys that lead there.
  expected<raw_data> rows{};     ///< What is read, or what is wrong with it.
  bool has_no_test_part = false; ///< So section.test_share was chosen here.
};

/// A folder of pictures or of .npy files, a file of arrays or a table; nothing where the path names none of them.
[[nodiscard]] std::optional<own_data_look> look_at_own_data(const std::filesystem::path& path);

} // namespace mneme
