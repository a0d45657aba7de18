/// image_entries: reads data sets that consist of JPEG or PNG files with one class each.
#pragma once
#include "runtime/base/diagnostic.hpp"
#include "runtime/data/dataset.hpp"
#include "runtime/data/row_filter.hpp"
#include <filesystem>
#include <functional>
#include <vector>
namespace mneme {

struct image_entry {
  std::filesystem::path file{};
  std::int32_t label = 0;
  std::int32_t domain = 0; ///< Limits on rows apply to each domain separately.
};

/// JPEG files (.jpg, .jpeg, ignoring case) of a folder, sorted by name. Fails if there are none.
[[nodiscard]] expected<std::vector<std::filesystem::path>> jpegs_in(const std::filesystem::path& folder);
/// JPEG and PNG files of a folder, sorted by name. Fails if there are none.
[[nodiscard]] expected<std::vector<std::filesystem::path>> image_files_in(const std::filesystem::path& folder);

/// JPEG files of class folders, sorted by class and name. Fails with the names of all folders without such files.
[[nodiscard]] expected<std::vector<image_entry>> image_entries_in(const std::vector<std::filesystem::path>& classes);

struct image_split {
  std::vector<image_entry> train{}, test{};
};
/// Splits a data set that has no test images. @param is_test decides, given an image's index in its class, from 0
[[nodiscard]] image_split split_by_place(const std::vector<image_entry>& entries,
                                         const std::function<bool(std::size_t place)>& is_test);

/// Folders in `folder` that are named by a WordNet id (n01443537), sorted by name.
[[nodiscard]] std::vector<std::filesystem::path> wordnet_folders(const std::filesystem::path& folder);
/// The last components of the paths, for use as class names.
[[nodiscard]] std::vector<std::string> folder_names(const std::vector<std::filesystem::path>& folders);
/// True if `name` is "n" and eight digits.
[[nodiscard]] bool is_wordnet_id(std::string_view name);

/// Method that fits images to one size. Images are decoded at full size and reduced with antialiasing. Results equal
/// those of Pillow.
enum class image_fit : std::uint8_t {
  exact,  ///< All images must have this size; others are rejected.
  center, ///< The largest centered square (torchvision's CenterCrop), resized (bilinear).
  /// torchvision's Resize and CenterCrop (bicubic): the shorter side is resized to 8/7 of the size before the crop.
  center_bicubic,
  whole, ///< The whole image, resized (bilinear) without keeping its aspect ratio.
};

/// Reads the images within `limits` on all cores: [N, 3, side_px, side_px], with domains if there are several. Errors
/// name the first unreadable files and state the number of others.
[[nodiscard]] expected<image_table> read_fitted_images(const std::vector<image_entry>& entries, row_limits limits,
                                                       std::int64_t classes, std::int64_t side_px, image_fit fit);

/// The size to which images of user data are fitted.
struct image_size {
  std::int64_t height = 0, width = 0;
  std::filesystem::path like{}; ///< Image that defines the size, which all images must have; empty: images are resized.
};
/// Returns the size `side_px` x `side_px`. If side_px is 0, returns the size of the first readable image; fails if none
/// of the first images is readable.
[[nodiscard]] expected<image_size> find_image_size(const std::vector<image_entry>& entries, std::int64_t side_px);
/// Like read_fitted_images(), but returns [N, 3, height, width]. Images that must be resized are first cropped to the
/// largest centered square. @param has_domains limits apply to each domain, and the table contains domains
[[nodiscard]] expected<image_table> read_images(const std::vector<image_entry>& entries, row_limits limits,
                                                std::int64_t classes, const image_size& size, bool has_domains);

} // namespace mneme
