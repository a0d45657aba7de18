/// row_store: data sets of rows that a method generates, shared by all their users.
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

/// Generated rows are sent and stored as tensors in broadcasts, uploads and memories, where their bytes are counted.
/// The same two tensors always give the same data set, so the rows of a broadcast are in memory once, and once on a
/// device, for any number of clients. The store does not keep a data set alive; it is freed with its last user.
/// Thread-safe.
class row_store {
public:
  explicit row_store(row_format format = {}) : format_(std::move(format)) {}

  /// Throws std::invalid_argument with the reason if the tensors are invalid.
  /// @param images [N, C, H, W], immutable: uint8, normalized and augmented like the run's images, or float32, passed
  /// to nets unchanged. Tensors on a device are copied to the host once. @param labels [N] int32 or int64, immutable
  [[nodiscard]] std::shared_ptr<const dataset> rows_of(const at::Tensor& images, const at::Tensor& labels);
  /// Number of data sets in use.
  [[nodiscard]] std::size_t size();

private:
  /// Addresses of images and labels. A data set keeps both tensors alive, so no address is reused while it exists.
  using handles = std::pair<const void*, const void*>;
  void forget_unused();

  row_format format_;
  std::mutex mutex_;
  std::map<handles, std::weak_ptr<const dataset>> known_; // the order has no effect
};

/// All rows of a data set, in order.
[[nodiscard]] sample_view every_row_of(std::shared_ptr<const dataset> source);

} // namespace mneme
