/// picture_lists: the rows of a data set as lists name them, a picture and its class in each line.
#pragma once
#include "runtime/data/photographs.hpp"
namespace mneme {

/// A list of one split of a domain.
struct picture_list {
  std::filesystem::path file{}; ///< Lines "PATH LABEL"; empty ones are skipped.
  std::int32_t domain = 0;
};

/// The pictures of all lists, list by list, each in the order of its paths, so that the order of lines has no effect.
/// Paths are relative to `folder` and stay below it; labels count from 0. Each broken line is a diagnostic with its
/// number, and so are a list without lines and a path that is there twice.
[[nodiscard]] expected<std::vector<photograph>> read_picture_lists(const std::vector<picture_list>& lists,
                                                                   const std::filesystem::path& folder);

} // namespace mneme
