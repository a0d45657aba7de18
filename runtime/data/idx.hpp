/// idx: the format of the MNIST family, unsigned bytes behind a big-endian header.
#pragma once
#include "runtime/data/dataset.hpp"
#include "runtime/data/files.hpp"
#include "runtime/data/row_filter.hpp"
namespace mneme {

/// What the images of a data set look like: anything else in a file is a diagnostic.
struct idx_layout {
  std::int64_t height = 28, width = 28, classes = 10;
  std::int64_t rows_max = 1'000'000; ///< No file of this format has more: a packed one could hold a thousand in a byte.
};

/// All labels of an idx1 file, each below `classes`.
[[nodiscard]] expected<std::vector<std::int32_t>> read_idx_labels(const std::filesystem::path& file,
                                                                  std::int64_t classes);

/// The first `rows` images of an idx3 file that should hold `rows_stated` of them, as [rows, 1, H, W] uint8.
/// A file read to its end must end there.
[[nodiscard]] expected<at::Tensor> read_idx_images(const std::filesystem::path& file, const idx_layout& layout,
                                                   std::int64_t rows_stated, std::int64_t rows);

/// Images and labels that belong together, up to the last row that `limits` keep.
[[nodiscard]] expected<image_table> read_idx(const std::filesystem::path& images, const std::filesystem::path& labels,
                                             const idx_layout& layout, row_limits limits);

/// A data set of four idx files.
struct idx_set {
  file_set files{}; ///< Train images, train labels, test images, test labels.
  idx_layout layout{};
  double mean = 0.5, deviation = 0.5; ///< Statistics of pixels in [0, 1].
  std::vector<std::string> class_names{}; ///< As in raw_data.
};
/// Finds and reads both splits, turned if `data.transposed`. Reports what is wrong with either.
[[nodiscard]] expected<raw_data> load_idx(const idx_set& set, const data_section& data,
                                          const std::vector<std::filesystem::path>& roots);

} // namespace mneme
