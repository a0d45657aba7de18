/// class_range: neighbouring labels of a run, from one up to another.
#pragma once
#include <cstdint>
namespace mneme {

/// Labels low .. high - 1 of the run.
struct class_range {
  std::int64_t low = 0, high = 0;
  [[nodiscard]] std::int64_t size() const noexcept { return high - low; }
  bool operator==(const class_range&) const = default;
};

} // namespace mneme
