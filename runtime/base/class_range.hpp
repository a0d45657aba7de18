/// class_range: a range of consecutive labels.
#pragma once
#include <cstdint>
namespace mneme {

/// Labels from low to high - 1.
struct class_range {
  std::int64_t low = 0, high = 0;
  [[nodiscard]] std::int64_t size() const noexcept { return high - low; }
  bool operator==(const class_range&) const = default;
};

} // namespace mneme
