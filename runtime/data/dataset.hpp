/// dataset: one split of a data set, loaded once per process, and the selection of its rows that a job reads.
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
  at::Tensor images{}; ///< [N, C, H, W] uint8 or float32, vectors with C = H = 1; tokens [N, 1, 1, T] int32
  std::vector<std::int32_t> labels{};  ///< [N] classes of the file, from 0
  std::vector<std::int32_t> domains{}; ///< [N], or empty if the data set has one domain
  /// [N] ascending: row numbers in the original file, if train_per_class has dropped rows; empty: rows are numbered
  /// from 0.
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
  std::vector<std::string> class_names{};  ///< By class number; empty: classes have no names.
  std::vector<double> mean{}, deviation{}; ///< Per channel, of pixels in [0, 1]; 0 and 1 for rows that are not pixels.
  /// Rows of the original training file that data.test_share selected for testing, ascending, including rows that a
  /// limit of test rows drops.
  std::vector<std::int64_t> drawn_rows{};
};

/// Pixel transform of a task for one channel: output pixel p is the weighted sum of four input pixels (one of weight 1
/// for permutations). Created by the task stream, applied by gather().
struct pixel_map {
  struct taps {
    std::array<std::int32_t, 4> from{}; ///< Input pixel of the same channel; -1: outside the image, reads 0.
    std::array<float, 4> weight{};
  };
  std::vector<taps> pixels{};   ///< [H * W] for affine, [D] for permute; empty: identity.
  bool across_channels = false; ///< `pixels` has D entries and indexes all channels at once (permute).
  bool invert = false;          ///< Replace each value by 255 - value, after the move.
};

/// Size after data.resize and data.crop, with the rounding of torchvision's Resize and CenterCrop.
struct shown_size {
  std::int64_t resize = 0; ///< Length of the shorter side in pixels; 0: keep the size.
  std::int64_t crop = 0;   ///< Side length of the center crop in pixels; 0: no crop.
  [[nodiscard]] bool changes() const noexcept { return resize > 0 || crop > 0; }
  /// Height and width after resizing, before cropping.
  [[nodiscard]] std::array<std::int64_t, 2> resized(std::int64_t height, std::int64_t width) const;
};

/// One split as jobs read it. A *row* is a file row under a transform: row r is file row r % N under `transforms[r /
/// N]`, so the row index alone determines the content, in every task. Immutable.
struct dataset {
  at::Tensor images{};                   ///< [N, C, H, W] uint8
  std::vector<std::int32_t> labels{};    ///< [N] labels of the run: position in the class order (or mod n); -1: unused
  std::vector<std::int64_t> file_rows{}; ///< As in image_table.
  std::vector<pixel_map> transforms{};   ///< At least one entry; a run without transforms has one identity.
  shown_size shown{};                    ///< Only without transforms.
  std::vector<float> scale{}, shift{};   ///< [C]: a pixel v in 0..255 becomes v * scale + shift.
  // Instead of images: rows of numbers (of the data set, or computed by a net) or of tokens. Transforms, augmentation,
  // scale and shift do not apply to them. Numbers of the data set are normalized in place.
  at::Tensor vectors{};                       ///< [N, D] float32, or undefined
  std::array<std::int64_t, 3> vector_shape{}; ///< C, H, W of vectors that are images; zeros: 1, 1, D
  at::Tensor deviations{}; ///< [N, D] float32, or undefined: epochs draw a row from a normal distribution around it
  bool passing = false; ///< Generated during the run (row_store.hpp): data derived from its rows must not outlive it.
  [[nodiscard]] std::int64_t files_rows() const noexcept { return std::ssize(labels); }
  /// Index of the file row, without its transform.
  [[nodiscard]] std::int64_t in_file(std::int64_t row) const {
    return row < files_rows() ? row : row % files_rows(); // most runs have no transforms, and divisions are slow
  }
  [[nodiscard]] std::int32_t label(std::int64_t row) const { return labels[static_cast<std::size_t>(in_file(row))]; }
  /// Row number in the original file.
  [[nodiscard]] std::int64_t file_row(std::int64_t row) const {
    const auto at = in_file(row);
    return file_rows.empty() ? at : file_rows[static_cast<std::size_t>(at)];
  }
  [[nodiscard]] std::array<std::int64_t, 3> shape() const;        ///< C, H, W as nets receive them
  [[nodiscard]] std::array<std::int64_t, 3> stored_shape() const; ///< C, H, W of `images`
};

/// A selection of rows of a data set. Cheap to copy.
struct sample_view {
  std::shared_ptr<const dataset> source{};
  std::shared_ptr<const std::vector<std::int64_t>> rows{};  ///< [n]
  std::shared_ptr<const std::vector<std::int32_t>> marks{}; ///< [n] the method's column of partition.file, or null
  [[nodiscard]] std::int64_t size() const noexcept { return rows ? std::ssize(*rows) : 0; }
};

} // namespace mneme
