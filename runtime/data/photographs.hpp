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

/// How the photographs become images of one size. All are decoded in full size and reduced with antialiasing, with
/// Pillow's results.
enum class photograph_fit : std::uint8_t {
  exact,  ///< They have that size, or are refused.
  centre, ///< The largest square in their middle, as torchvision's CenterCrop takes it, resized (bilinear).
  /// As torchvision's Resize and CenterCrop, bicubic: the shorter side is brought to 8/7 of the size; its middle.
  centre_bicubic,
  whole, ///< All of the picture, resized (bilinear), whatever its proportions.
};

/// Rows that `limits` keep, [N, 3, side_px, side_px], read on all cores, with their domains where there are several.
/// The first broken files are named, and the number of the others.
[[nodiscard]] expected<image_table> read_photographs(const std::vector<photograph>& photographs, row_limits limits,
                                                     std::int64_t classes, std::int64_t side_px, photograph_fit fit);

/// The size of a user's own pictures.
struct picture_size {
  std::int64_t height = 0, width = 0;
  std::filesystem::path like{}; ///< The picture that has it, where all have to; empty: all are brought to it.
};
/// Squares of `side_px`; 0: the size of the first of `photographs` that can be read. Fails if none of the first ones
/// can.
[[nodiscard]] expected<picture_size> size_of_pictures(const std::vector<photograph>& photographs, std::int64_t side_px);
/// As read_photographs(), [N, 3, height, width]; pictures that are brought to the size are cut to the largest square in
/// their middle. @param has_domains limits hold for each, and the table names them
[[nodiscard]] expected<image_table> read_pictures(const std::vector<photograph>& photographs, row_limits limits,
                                                  std::int64_t classes, const picture_size& size, bool has_domains);

} // namespace mneme
