/// run_digest: 128-bit XXH3 digest, chained over all decisions of a run. Equal digests mean equal runs.
#pragma once
#include "runtime/base/tensor_map.hpp"
#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
struct XXH3_state_s;
namespace mneme {

struct digest128 {
  std::uint64_t high = 0, low = 0;
  auto operator<=>(const digest128&) const = default;
  template <class Archive>
  void persist(Archive& state) {
    state(high)(low);
  }
};
/// 32 hexadecimal digits, high half first.
[[nodiscard]] std::string hex_text(const digest128& digest);
/// Digest of the bytes.
[[nodiscard]] digest128 digest_of(std::span<const std::byte> bytes);
/// Digest of the tensors' names, dtypes, shapes and contents, in name order. GPU tensors are copied to the host.
[[nodiscard]] digest128 digest_of(const tensor_map& tensors);
/// Digest of a file's content. Throws std::system_error if it cannot be read.
[[nodiscard]] digest128 digest_of_file(const std::string& path);

/// Digest of bytes that are added in pieces. It equals the digest of their concatenation.
class digest_stream {
public:
  digest_stream();
  void add(std::span<const std::byte> bytes);
  /// Digest of all bytes added so far.
  [[nodiscard]] digest128 value() const;

private:
  struct freed {
    void operator()(XXH3_state_s* state) const;
  };
  std::unique_ptr<XXH3_state_s, freed> state_;
};

/// Chained digest d' = H(d, item). Integers of any type are added as 8 little-endian bytes, doubles by their bits.
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
  template <class Archive>
  void persist(Archive& state) {
    state(value_);
  }

private:
  digest128 value_;
};

} // namespace mneme
