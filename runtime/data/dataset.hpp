/// dataset: one split of a data set, in memory once per process, and the rows of it that jobs read.
#pragma once
#include <ATen/core/Tensor.h>
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>
namespace mneme {

// Shapes: N rows of a file, C channels, H height, W width, D = C * H * W pixels.

/// A file's rows as they are, in file order.
struct image_table {
  at::Tensor images{}; ///< [N, C, H, W] uint8 or float32, vectors with C = H = 1; tokens [N, 1, 1, T] int32
  std::vector<std::int32_t> labels{};  ///< [N] classes of the file, from 0
  std::vector<std::int32_t> domains{}; ///< [N], or empty if the data set has one domain
  /// [N] ascending: each row's number in the original file, where train_per_class has left some out;
  /// empty: rows are numbered as in the file.
  std::vector<std::int64_t> file_rows{};
  [[nodiscard]] std::int64_t size() const noexcept { return std::ssize(labels); }
};

/// Everything a data source reads: both splits and the constants of section 5.
struct raw_data {
  std::string name{};
  image_table train{}, test{};
  std::int64_t classes = 0;
  std::int64_t tokens = 0; ///< Rows hold tokens from 0 below this; 0: they hold pixels.
  std::vector<std::string> domain_names{};
  std::vector<std::string> class_names{};  ///< By class of the file; empty: they have numbers only.
  std::vector<double> mean{}, deviation{}; ///< Per channel, of pixels in [0, 1]; 0 and 1 of rows that are no pixels.
  /// Rows of the original training file that data.test_share has drawn for the test, ascending, also those that a limit
  /// of test rows leaves out.
  std::vector<std::int64_t> drawn_rows{};
};

/// How a task shows the pixels of one channel: output pixel p is the weighted sum of four input
/// pixels (one of weight 1 for permutations). Made by the task stream, read by gather().
struct pixel_map {
  struct taps {
    std::array<std::int32_t, 4> from{}; ///< Input pixel of the same channel; -1: outside, reads 0.
    std::array<float, 4> weight{};
  };
  std::vector<taps> pixels{};   ///< [H * W] for affine, [D] for permute; empty: identity.
  bool across_channels = false; ///< `pixels` has D entries and indexes all channels at once (permute).
  bool invert = false;          ///< 255 - value, after the move.
};

/// The size in which images are shown where that is not their own, as torchvision's Resize and CenterCrop have it.
struct shown_size {
  std::int64_t resize = 0; ///< Pixels of the shorter side that they are brought to; 0: as they are.
  std::int64_t crop = 0;   ///< Pixels of a side of the middle that remains; 0: all.
  [[nodiscard]] bool changes() const noexcept { return resize > 0 || crop > 0; }
  /// Height and width of a picture before its middle is taken.
  [[nodiscard]] std::array<std::int64_t, 2> resized(std::int64_t height, std::int64_t width) const;
};

/// One split as jobs read it. A *row* is a file row under a transform: row r is file row r % N under
/// `transforms[r / N]`, so a row index alone says what a client sees, in every task. Immutable.
struct dataset {
  at::Tensor images{};                ///< [N, C, H, W] uint8
  std::vector<std::int32_t> labels{}; ///< [N] labels of the run: position in the class order, or that mod n; -1: unused
  std::vector<std::int64_t> file_rows{}; ///< As in image_table.
  std::vector<pixel_map> transforms{};   ///< At least one entry; a run without transforms has one identity.
  shown_size shown{};                    ///< Without transforms only.
  std::vector<float> scale{}, shift{};   ///< [C]: a pixel v in 0..255 becomes v * scale + shift.
  // Instead of images, rows of numbers, of the data set or made by a net, or of tokens; no transform and no
  // augmentation apply to them, and no scale and shift: numbers of the data set have none, and are normalised where
  // they lie.
  at::Tensor vectors{};                       ///< [N, D] float32, or undefined
  std::array<std::int64_t, 3> vector_shape{}; ///< C, H, W of vectors that are images; zeros: 1, 1, D
  at::Tensor deviations{}; ///< [N, D] float32, or undefined: training draws a row anew in each epoch, normal around it
  bool passing = false;    ///< Made during the run (row_store.hpp): nothing that is made of its rows outlives it.
  [[nodiscard]] std::int64_t files_rows() const noexcept { return std::ssize(labels); }
  /// The row of the file, without its transform.
  [[nodiscard]] std::int64_t in_file(std::int64_t row) const {
    return row < files_rows() ? row : row % files_rows(); // most runs have no transforms, and divisions are slow
  }
  [[nodiscard]] std::int32_t label(std::int64_t row) const { return labels[static_cast<std::size_t>(in_file(row))]; }
  /// The row of the original file that `row` shows.
  [[nodiscard]] std::int64_t file_row(std::int64_t row) const {
    const auto at = in_file(row);
    return file_rows.empty() ? at : file_rows[static_cast<std::size_t>(at)];
  }
  [[nodiscard]] std::array<std::int64_t, 3> shape() const;        ///< C, H, W as nets see them
  [[nodiscard]] std::array<std::int64_t, 3> stored_shape() const; ///< C, H, W of `images`
};

/// Rows of a data set. Cheap to copy.
struct sample_view {
  std::shared_ptr<const dataset> source{};
  std::shared_ptr<const std::vector<std::int64_t>> rows{};  ///< [n]
  std::shared_ptr<const std::vector<std::int32_t>> marks{}; ///< [n] the method's column of partition.file, or null
  [[nodiscard]] std::int64_t size() const noexcept { return rows ? std::ssize(*rows) : 0; }
};

} // namespace mneme
