/// bounded_number_set: a hash set of numbers with a fixed capacity and no allocation per number.
#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>
#include <utility>
#include <vector>
namespace mneme {

/// Time and memory are proportional to the capacity. The number 2^32 - 1 is not allowed.
class bounded_number_set {
public:
  /// @param size_max maximum number of elements
  explicit bounded_number_set(std::size_t size_max) : slots_(std::bit_ceil(2 * size_max + 1), empty) {}
  /// Inserts a number. Returns false if it was already in the set. @pre the set has room or contains the number
  bool insert(std::uint32_t number) {
    std::size_t at = (number * std::size_t{0x9E3779B97F4A7C15}) >> 32 & (slots_.size() - 1);
    for (; slots_[at] != empty; at = (at + 1) & (slots_.size() - 1))
      if (slots_[at] == number)
        return false;
    slots_[at] = number;
    return true;
  }
  /// Returns the numbers in ascending order. The set is consumed.
  [[nodiscard]] std::vector<std::uint32_t> ascending() && {
    std::erase(slots_, empty);
    std::sort(slots_.begin(), slots_.end());
    return std::move(slots_);
  }

private:
  static constexpr std::uint32_t empty = 0xFFFFFFFF;

  std::vector<std::uint32_t> slots_; // the size is a power of two
};

} // namespace mneme
