/// row_store: data sets of rows that a method generates, shared by all users.
#pragma once
#include "runtime/data/dataset.hpp"
#include <map>
#include <mutex>
namespace mneme {

// Axes: N rows; C channels, H height, W width of an image.

/// Properties that generated rows share with the data of the run.
struct row_format {
  std::vector<float> scale{}, shift{}; ///< [C]; as in dataset.
  std::int64_t classes = 0;            ///< Labels must be below; 0: unknown.
};

/// Generated rows are sent and stored as tensors in broadcasts, uploads and memories, where their bytes count. The same
/// two tensors always give the same data set, so a broadcast's rows are in memory once, and once on a device, for any
/// number of clients. The store does not keep a data set alive; it ends with its last user.
///
/// Thread-safe.
class row_store {
public:
  explicit row_store(row_format format = {}) : format_(std::move(format)) {}

  /// Throws std::invalid_argument with the reason if they are invalid.
  /// @param images [N, C, H, W], immutable: uint8, normalized and augmented like the run's images, or float32, passed
  /// to nets unchanged. Tensors on a device are copied to the host once. @param labels [N] int32 or int64, immutable
  [[nodiscard]] std::shared_ptr<const dataset> rows_of(const at::Tensor& images, const at::Tensor& labels);
  /// Number of data sets in use.
  [[nodiscard]] std::size_t size();

private:
  /// Addresses of images and labels. A data set keeps both tensors, so that no address is reused while it exists.
  using handles = std::pair<const void*, const void*>;
  void forget_unused();

  row_format format_;
  std::mutex mutex_;
  std::map<handles, std::weak_ptr<const dataset>> known_; // its order affects nothing
};

/// All rows of a data set, in order.
[[nodiscard]] sample_view every_row_of(std::shared_ptr<const dataset> source);

} // namespace mneme
