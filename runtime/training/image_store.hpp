/// image_store: the images of data sets on an executor's device, brought there once and given back with the last user.
#pragma once
#include "runtime/base/non_owning.hpp"
#include "runtime/data/dataset.hpp"
#include "runtime/training/gather.hpp"
#include "runtime/training/gather_calls.hpp"
#include <map>
namespace mneme {

/// On a CPU the data set's own memory is read, and nothing is stored.
class image_store {
public:
  explicit image_store(at::Device device) : device_(device) {}
  [[nodiscard]] const at::Device& device() const noexcept { return device_; }

  /// Gathers rows into out [rows.size(), C, H, W], a contiguous tensor on the device. A device may still be at it
  /// when the call returns; whatever is asked of the device next comes after it. Of vectors, `noise` holds a key per
  /// row or nothing.
  void gather_into(at::Tensor& out, const std::shared_ptr<const dataset>& source, std::span<const std::int64_t> rows,
                   std::span<const augmentation> augment, std::span<const rng_key> noise = {});

  /// Copies of data sets that nobody uses any more are freed.
  void forget_unused();
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
  std::map<const dataset*, copy> copies_; // looked up by address
};

} // namespace mneme
