/// run_digest: 128-bit XXH3, chained over what a run decides, so that equal digests mean equal runs.
#pragma once
#include "runtime/tensor_map.hpp"
#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
namespace mneme {

struct digest128 {
  std::uint64_t high = 0, low = 0;
  auto operator<=>(const digest128&) const = default;
};
/// 32 hex digits, high half first.
[[nodiscard]] std::string shown(const digest128& what);
[[nodiscard]] digest128 digest_of(std::span<const std::byte> bytes);
/// Names, dtypes, shapes and contents, in name order; tensors on a GPU are copied to the host.
[[nodiscard]] digest128 digest_of(const tensor_map& tensors);
/// The content of a file; throws std::system_error if it cannot be read.
[[nodiscard]] digest128 digest_of_file(const std::string& path);

/// d' = H(d, item). Whole numbers enter as 8 little-endian bytes whatever their type, doubles by their bits.
class run_digest {
public:
  void add(std::uint64_t item);
  template <std::integral Number>
  void add(Number item) {
    add(static_cast<std::uint64_t>(item));
  }
  void add(double item);
  void add(const digest128& item);
  [[nodiscard]] const digest128& value() const noexcept { return value_; }

private:
  digest128 value_;
};

} // namespace mneme
