/// generated_row_store: data sets of rows that a method generates, shared by all users of the same tensors.
#pragma once
#include "runtime/data/dataset.hpp"
#include <map>
#include <mutex>
namespace mneme {

// Axes: N rows; C channels, H height, W width of an image.

/// Properties that generated rows share with the data of the run.
struct row_format {
  std::vector<float> scale{}, shift{}; ///< [C]; see dataset.
  std::int64_t classes = 0;            ///< Exclusive upper bound of labels; 0: unknown.
};

/// Generated rows are stored as tensors in broadcasts, uploads and memories, which count their bytes. The same two
/// tensors always give the same data set. The rows of a broadcast are therefore in memory only once, and once per
/// device, for any number of clients. The store does not keep data sets alive; a data set is freed with its last user.
/// Thread-safe.
class generated_row_store {
public:
  /// @param format properties of the run's data
  explicit generated_row_store(row_format format = {}) : format_(std::move(format)) {}

  /// Returns the data set of two tensors. Throws std::invalid_argument with the reason if they are invalid.
  /// @param images [N, C, H, W], immutable: uint8, normalized and augmented like the run's images, or float32, passed
  /// to nets unchanged. Tensors on a device are copied to the host once. @param labels [N] int32 or int64, immutable
  [[nodiscard]] std::shared_ptr<const dataset> rows_of(const at::Tensor& images, const at::Tensor& labels);
  /// Number of data sets that are in use.
  [[nodiscard]] std::size_t size();

private:
  /// Addresses of images and labels. A data set keeps both tensors alive, so its addresses are not reused.
  using handles = std::pair<const void*, const void*>;
  void forget_unused();

  row_format format_;
  std::mutex mutex_;
  std::map<handles, std::weak_ptr<const dataset>> known_; // the order by address affects no result
};

/// A view of all rows of a data set, in order.
[[nodiscard]] sample_view every_row_of(std::shared_ptr<const dataset> source);

} // namespace mneme
