/// client_set: a set of clients with fast selection of the n-th client in id order.
#pragma once
#include "runtime/base/ids.hpp"
#include <cstdint>
#include <vector>
namespace mneme {

/// One bit per client, with counts for blocks and regions. A draw by rank depends only on the members, not on their
/// order of insertion.
class client_set {
public:
  /// Creates an empty set for clients 0 to clients - 1.
  explicit client_set(std::int64_t clients = 0);
  [[nodiscard]] std::int64_t size() const noexcept { return size_; }
  [[nodiscard]] bool contains(client_id client) const noexcept {
    return words_[client.value / 64] >> (client.value % 64) & 1;
  }
  /// Inserts (in = true) or erases a client. No effect if the client already is in this state.
  void put(client_id client, bool in);
  /// The client with the n-th smallest id. @pre 0 <= n < size()
  [[nodiscard]] client_id nth(std::int64_t n) const;
  /// True if a loaded state is valid: a set of clients 0 to clients - 1 with correct counts.
  [[nodiscard]] bool is_valid(std::int64_t clients) const;
  template <class Archive>
  void persist(Archive& state) {
    state.plain(words_).plain(blocks_).plain(regions_)(size_);
  }

private:
  static constexpr std::size_t words_of_block = 8, blocks_of_region = 64; // that is, blocks of 512 and regions of
                                                                          // 32,768 clients

  std::vector<std::uint64_t> words_;
  std::vector<std::uint32_t> blocks_, regions_; // number of set bits in each block or region
  std::int64_t size_ = 0;
};

} // namespace mneme
