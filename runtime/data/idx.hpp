/// idx: reads the file format of the MNIST family: unsigned bytes after a big-endian header.
#pragma once
#include "runtime/data/dataset.hpp"
#include "runtime/data/files.hpp"
#include "runtime/data/row_filter.hpp"
namespace mneme {

/// Expected height and width of the images; other images are rejected.
struct idx_layout {
  std::int64_t height = 28, width = 28, classes = 10;
  std::int64_t rows_max = 1'000'000; ///< Limit for compressed files, whose headers could claim any number.
};

/// Reads all labels of an idx1 file. Fails if a label is not below `classes`.
[[nodiscard]] expected<std::vector<std::int32_t>> read_idx_labels(const std::filesystem::path& file,
                                                                  std::int64_t classes);

/// Reads the first `rows` of `rows_stated` images of an idx3 file, [rows, 1, H, W] uint8. If all images are read, the
/// file must end after them.
[[nodiscard]] expected<at::Tensor> read_idx_images(const std::filesystem::path& file, const idx_layout& layout,
                                                   std::int64_t rows_stated, std::int64_t rows);

/// Reads images and labels up to the last row within `limits`. Fails if their numbers of rows differ.
[[nodiscard]] expected<image_table> read_idx(const std::filesystem::path& images, const std::filesystem::path& labels,
                                             const idx_layout& layout, row_limits limits);

/// A data set of four idx files.
struct idx_set {
  file_set files{}; ///< In the order: train images, train labels, test images, test labels.
  idx_layout layout{};
  double mean = 0.5, deviation = 0.5;     ///< For pixels in [0, 1].
  std::vector<std::string> class_names{}; ///< See raw_data.
};
/// Finds and reads both splits, and transposes images if `data.transposed` is set. Reports the errors of both.
[[nodiscard]] expected<raw_data> load_idx(const idx_set& set, const data_section& data,
                                          const std::vector<std::filesystem::path>& roots);

} // namespace mneme
