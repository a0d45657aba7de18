/// dataset: one split of a data set, loaded once per process, and selections of its rows for jobs.
#pragma once
#include <ATen/core/Tensor.h>
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>
namespace mneme {

// Shapes: N rows of a file, C channels, H height, W width, D = C * H * W pixels.

/// The rows of a file, unchanged and in file order.
struct image_table {
  at::Tensor images{};                ///< [N, C, H, W] uint8 or float32; vectors: C = H = 1; tokens: [N, 1, 1, T] int32
  std::vector<std::int32_t> labels{}; ///< [N] class numbers of the file, from 0
  std::vector<std::int32_t> domains{}; ///< [N]; empty if there is one domain
  /// [N] ascending row numbers in the original file, if train_per_class has removed rows. Empty: rows are numbered from
  /// 0.
  std::vector<std::int64_t> file_rows{};
  [[nodiscard]] std::int64_t size() const noexcept { return std::ssize(labels); }
};

/// Result of a data source: both splits and the normalization constants.
struct raw_data {
  std::string name{};
  image_table train{}, test{};
  std::int64_t classes = 0;
  std::int64_t tokens = 0; ///< Vocabulary size if rows hold tokens; 0: rows hold pixels.
  std::vector<std::string> domain_names{};
  std::vector<std::string> class_names{};  ///< Indexed by class number; empty if classes have no names.
  std::vector<double> mean{}, deviation{}; ///< One value per channel, for pixels in [0, 1]. Other rows have mean 0 and
                                           ///< deviation 1.
  /// Ascending numbers of the rows in the training file that data.test_share has moved to the test split, including
  /// those that a limit on test rows removes.
  std::vector<std::int64_t> drawn_rows{};
};

/// Pixel transform of a task for one channel. Each output pixel is a weighted sum of four input pixels; a permutation
/// uses one input pixel with weight 1. Created by task_transforms() and applied by gather().
struct pixel_map {
  struct taps {
    std::array<std::int32_t, 4> from{}; ///< Input pixels of the same channel; -1: outside of the image, value 0.
    std::array<float, 4> weight{};
  };
  std::vector<taps> pixels{};   ///< [H * W] for affine, [D] for permute; empty: identity.
  bool across_channels = false; ///< `pixels` has D entries, which index all channels (permute).
  bool invert = false;          ///< true: replaces each value by 255 - value at the end.
};

/// Image size after data.resize and data.crop, rounded as in torchvision's Resize and CenterCrop.
struct resize_spec {
  std::int64_t resize = 0; ///< Length of the shorter side in pixels; 0: no resizing.
  std::int64_t crop = 0;   ///< Side length of the center crop in pixels; 0: no crop.
  [[nodiscard]] bool changes() const noexcept { return resize > 0 || crop > 0; }
  /// [height, width] after resizing, before cropping.
  [[nodiscard]] std::array<std::int64_t, 2> resized(std::int64_t height, std::int64_t width) const;
};

/// One split as jobs read it. A row is a file row under a transform: row r is file row r % N under transforms[r / N].
/// So the row index alone determines the content of a row. Immutable.
struct dataset {
  at::Tensor images{};                   ///< [N, C, H, W] uint8
  std::vector<std::int32_t> labels{};    ///< [N] labels of the run (task_stream); -1: the run does not use the class
  std::vector<std::int64_t> file_rows{}; ///< See image_table.
  std::vector<pixel_map> transforms{};   ///< At least one; the identity if the run has no transforms.
  resize_spec shown{};                   ///< Used only without transforms.
  std::vector<float> scale{}, shift{};   ///< [C] A pixel v in [0, 255] becomes v * scale + shift.
  // Rows of numbers or tokens instead of images. Transforms, augmentation, scale and shift do not apply to them.
  // Numbers of the data set are normalized in place.
  at::Tensor vectors{};                       ///< [N, D] float32; undefined for images
  std::array<std::int64_t, 3> vector_shape{}; ///< C, H, W of vectors that are images; zeros: 1, 1, D
  at::Tensor deviations{};   ///< [N, D] float32: standard deviations with which each epoch draws rows; or undefined
  bool is_temporary = false; ///< True: generated during the run (generated_row_store.hpp). Data derived from its rows
                             ///< must not outlive it.
  [[nodiscard]] std::int64_t files_rows() const noexcept { return std::ssize(labels); }
  /// The file row of a row, without its transform.
  [[nodiscard]] std::int64_t in_file(std::int64_t row) const {
    return row < files_rows() ? row : row % files_rows(); // avoids a division in runs without transforms
  }
  [[nodiscard]] std::int32_t label(std::int64_t row) const { return labels[static_cast<std::size_t>(in_file(row))]; }
  /// The row's number in the original file.
  [[nodiscard]] std::int64_t file_row(std::int64_t row) const {
    const auto at = in_file(row);
    return file_rows.empty() ? at : file_rows[static_cast<std::size_t>(at)];
  }
  [[nodiscard]] std::array<std::int64_t, 3> shape() const;        ///< C, H, W as nets receive rows
  [[nodiscard]] std::array<std::int64_t, 3> stored_shape() const; ///< C, H, W of `images`
};

/// A selection of rows of a data set. Cheap to copy.
struct sample_view {
  std::shared_ptr<const dataset> source{};
  std::shared_ptr<const std::vector<std::int64_t>> rows{};  ///< [n] row indices
  std::shared_ptr<const std::vector<std::int32_t>> marks{}; ///< [n] values in the method's column of partition.file, or
                                                            ///< null
  [[nodiscard]] std::int64_t size() const noexcept { return rows ? std::ssize(*rows) : 0; }
};

} // namespace mneme
