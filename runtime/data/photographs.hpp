/// photographs: reads data sets of JPEG or PNG files, each with a class.
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
  std::int32_t domain = 0; ///< Row limits apply to each domain separately.
};

/// JPEG files of a folder (.jpg, .jpeg, case-insensitive) by name. Fails if there are none.
[[nodiscard]] expected<std::vector<std::filesystem::path>> jpegs_in(const std::filesystem::path& folder);
/// JPEG and PNG files of a folder by name. Fails if there are none.
[[nodiscard]] expected<std::vector<std::filesystem::path>> pictures_in(const std::filesystem::path& folder);

/// JPEG files of class folders, by class and name. Fails with the names of all folders without such files.
[[nodiscard]] expected<std::vector<photograph>> photographs_in(const std::vector<std::filesystem::path>& classes);

struct photograph_split {
  std::vector<photograph> train{}, test{};
};
/// Splits data sets without test images. @param is_test of an image's index within its class, from 0
[[nodiscard]] photograph_split split_by_place(const std::vector<photograph>& photographs,
                                              const std::function<bool(std::size_t place)>& is_test);

/// Folders below `folder` that are named by a WordNet id (n01443537), by name.
[[nodiscard]] std::vector<std::filesystem::path> wordnet_folders(const std::filesystem::path& folder);
/// Last components of the paths, used as class names.
[[nodiscard]] std::vector<std::string> folder_names(const std::vector<std::filesystem::path>& folders);
/// True if `name` is an n and eight digits.
[[nodiscard]] bool is_wordnet_id(std::string_view name);

/// How images are brought to one size. They are decoded in full size and reduced with antialiasing, with the results of
/// Pillow.
enum class photograph_fit : std::uint8_t {
  exact,  ///< Images must have the size; others are refused.
  centre, ///< Largest centered square (torchvision's CenterCrop), then resized (bilinear).
  /// torchvision's Resize and CenterCrop, bicubic: the shorter side is resized to 8/7 of the size, then center-cropped.
  centre_bicubic,
  whole, ///< The whole image resized (bilinear), without keeping the aspect ratio.
};

/// Reads the rows within `limits` on all cores: [N, 3, side_px, side_px], and their domains if there are several. The
/// diagnostics name the first unreadable files and the number of others.
[[nodiscard]] expected<image_table> read_photographs(const std::vector<photograph>& photographs, row_limits limits,
                                                     std::int64_t classes, std::int64_t side_px, photograph_fit fit);

/// Image size of user data.
struct picture_size {
  std::int64_t height = 0, width = 0;
  std::filesystem::path like{}; ///< Image that defines the size, if all images must have it; empty: images are resized.
};
/// Size `side_px` x `side_px`; for 0, the size of the first readable image. Fails if none of the first images can be
/// read.
[[nodiscard]] expected<picture_size> size_of_pictures(const std::vector<photograph>& photographs, std::int64_t side_px);
/// Like read_photographs(), [N, 3, height, width]. Images that need resizing are first cropped to the largest centered
/// square. @param has_domains limits apply to each domain, and the table contains domains
[[nodiscard]] expected<image_table> read_pictures(const std::vector<photograph>& photographs, row_limits limits,
                                                  std::int64_t classes, const picture_size& size, bool has_domains);

} // namespace mneme
