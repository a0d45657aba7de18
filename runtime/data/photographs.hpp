/// photographs: data sets whose rows are JPEG or PNG files, each with its class.
#pragma once
#include "runtime/base/diagnostic.hpp"
#include "runtime/data/dataset.hpp"
#include "runtime/data/row_filter.hpp"
#include <filesystem>
#include <functional>
#include <vector>
namespace mneme {

struct photograph {
  std::filesystem::path file{};
  std::int32_t label = 0;
  std::int32_t domain = 0; ///< Limits of rows hold for each.
};

/// JPEG files of a folder (.jpg, .jpeg, in any case) by name; a diagnostic where there are none.
[[nodiscard]] expected<std::vector<std::filesystem::path>> jpegs_in(const std::filesystem::path& folder);
/// The same with PNG files (.png) among them.
[[nodiscard]] expected<std::vector<std::filesystem::path>> pictures_in(const std::filesystem::path& folder);

/// JPEG files of classes, a folder each, by class and name. All folders without such files are named.
[[nodiscard]] expected<std::vector<photograph>> photographs_in(const std::vector<std::filesystem::path>& classes);

struct photograph_split {
  std::vector<photograph> train{}, test{};
};
/// Where a data set has no test images of its own. @param is_test of a photograph's place within its class, from 0
[[nodiscard]] photograph_split split_by_place(const std::vector<photograph>& photographs,
                                              const std::function<bool(std::size_t place)>& is_test);

/// Those folders below `folder` that are named as WordNet names a thing (n01443537), by name.
[[nodiscard]] std::vector<std::filesystem::path> wordnet_folders(const std::filesystem::path& folder);
/// The last parts of the paths: how classes are called that are folders.
[[nodiscard]] std::vector<std::string> folder_names(const std::vector<std::filesystem::path>& folders);
/// True if `name` is an n and eight digits.
[[nodiscard]] bool is_wordnet_id(std::string_view name);

/// How the photographs become images of one size.
enum class photograph_fit : std::uint8_t {
  exact,  ///< They have that size, or are refused.
  centre, ///< The square in their middle, of 7/8 of the shorter side, resized (bilinear).
  /// As torchvision's Resize and CenterCrop, bicubic: the shorter side is brought to 8/7 of the size; its middle.
  centre_bicubic,
  whole, ///< All of the picture, resized (bilinear), whatever its proportions.
};

/// Rows that `limits` keep, [N, 3, side_px, side_px], read on all cores, with their domains where there are several. At
/// most a few broken files are named.
[[nodiscard]] expected<image_table> read_photographs(const std::vector<photograph>& photographs, row_limits limits,
                                                     std::int64_t classes, std::int64_t side_px, photograph_fit fit);

} // namespace mneme
