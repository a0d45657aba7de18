/// row_store: rows that a method makes, as data sets that all its users share.
#pragma once
#include "runtime/data/dataset.hpp"
#include <map>
#include <mutex>
namespace mneme {

// Axes: N rows; C channels, H height, W width of an image.

/// What the data of a run has in common with rows made in it.
struct row_format {
  std::vector<float> scale{}, shift{}; ///< [C]; as in dataset.
  std::int64_t classes = 0;            ///< Labels lie below; 0: not known.
};

/// Rows travel and are remembered as tensors: in broadcasts, uploads and memories, where their bytes count. Whoever
/// turns the same two tensors into rows is given the same data set, so that a broadcast's rows are in memory once, and
/// once on a device, whatever the number of its clients. The store keeps no row alive: a data set ends with its last
/// user.
///
/// Safe to use from several threads.
class row_store {
public:
  explicit row_store(row_format format = {}) : format_(std::move(format)) {}

  /// Throws std::invalid_argument, naming what is wrong with them.
  /// @param images [N, C, H, W], frozen: uint8, normalised and augmented as the run's images are, or float32, shown to
  /// nets as they are. On a device: they are brought to the host once. @param labels [N] int32 or int64, frozen
  [[nodiscard]] std::shared_ptr<const dataset> rows_of(const at::Tensor& images, const at::Tensor& labels);
  /// How many data sets somebody uses.
  [[nodiscard]] std::size_t size();

private:
  /// Those of images and labels. A data set keeps those that name it, so that no address comes twice while it lives.
  using handles = std::pair<const void*, const void*>;
  void forget_unused();

  row_format format_;
  std::mutex mutex_;
  std::map<handles, std::weak_ptr<const dataset>> known_; // what order it has shows nowhere
};

/// All rows of a data set, in order.
[[nodiscard]] sample_view every_row_of(std::shared_ptr<const dataset> source);

} // namespace mneme
