/// image_lists: reads data sets from lists with one image path and class per line.
#pragma once
#include "runtime/data/image_entries.hpp"
namespace mneme {

/// List of the images of one split of one domain.
struct image_list {
  std::filesystem::path file{}; ///< Lines of the form "PATH LABEL"; empty lines are skipped.
  std::int32_t domain = 0;
};

/// Returns the images of all lists, list by list, sorted by path, so that the order of lines has no effect. Paths are
/// relative to `folder` and must stay inside it; labels begin at 0. Invalid lines (with their numbers), empty lists and
/// duplicate paths are errors.
[[nodiscard]] expected<std::vector<image_entry>> read_image_lists(const std::vector<image_list>& lists,
                                                                  const std::filesystem::path& folder);

} // namespace mneme
