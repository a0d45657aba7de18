/// picture_lists: reads data sets from lists with one image path and class per line.
#pragma once
#include "runtime/data/photographs.hpp"
namespace mneme {

/// A list of one split of a domain.
struct picture_list {
  std::filesystem::path file{}; ///< Lines "PATH LABEL"; empty ones are skipped.
  std::int32_t domain = 0;
};

/// The images of all lists, list by list, sorted by path, so that the order of lines has no effect. Paths are relative
/// to `folder` and must stay below it; labels count from 0. Each invalid line is a diagnostic with its number; so are
/// an empty list and a duplicate path.
[[nodiscard]] expected<std::vector<photograph>> read_picture_lists(const std::vector<picture_list>& lists,
                                                                   const std::filesystem::path& folder);

} // namespace mneme
