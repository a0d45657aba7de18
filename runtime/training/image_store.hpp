/// image_store: caches the images of data sets on an executor's device for as long as the data sets exist.
#pragma once
#include "runtime/base/non_owning.hpp"
#include "runtime/data/dataset.hpp"
#include "runtime/training/gather.hpp"
#include "runtime/training/gather_calls.hpp"
#include <map>
namespace mneme {

/// On a CPU, rows are read from the data set's memory, and nothing is cached.
class image_store {
public:
  explicit image_store(at::Device device) : device_(device) {}
  [[nodiscard]] const at::Device& device() const noexcept { return device_; }

  /// Gathers rows into out [rows.size(), C, H, W], contiguous on the device. On a GPU the call may be asynchronous;
  /// operations that are queued there later run after it.
  /// @param noise one key per row of a data set of vectors, or empty: no noise; ignored for images
  void gather_into(at::Tensor& out, const std::shared_ptr<const dataset>& source, std::span<const std::int64_t> rows,
                   std::span<const augmentation> augment, std::span<const rng_key> noise = {});

  /// Frees the copies of data sets that no longer exist.
  void forget_unused();
  /// Number of data sets with a copy on the device.
  [[nodiscard]] std::size_t copies() const noexcept { return copies_.size(); }

private:
  struct asked_rows {
    std::span<const std::int64_t> rows{};
    std::span<const augmentation> augment{};
    std::span<const rng_key> noise{};
  };
  void gather_on_host(at::Tensor& out, const dataset& source, const asked_rows& asked) const;

  struct copy {
    weak_handle<const dataset> source{};
    gather_tables tables{};
  };
  at::Device device_;
  std::map<const dataset*, copy> copies_; // only used for lookups by address
};

} // namespace mneme
