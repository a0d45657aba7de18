/// client_set: a set of clients from which the n-th in id order is found at once.
#pragma once
#include "runtime/base/ids.hpp"
#include <cstdint>
#include <vector>
namespace mneme {

/// A bit per client, and counts of bits over blocks and regions. What is drawn from it by rank depends on who is in the
/// set, never on the order in which they came.
class client_set {
public:
  /// Empty; for clients 0 .. clients - 1.
  explicit client_set(std::int64_t clients = 0);
  [[nodiscard]] std::int64_t size() const noexcept { return size_; }
  [[nodiscard]] bool contains(client_id client) const noexcept {
    return words_[client.value / 64] >> (client.value % 64) & 1;
  }
  /// Puts a client in, or takes it out; nothing happens if it is so already.
  void put(client_id client, bool in);
  /// The n-th smallest id, from 0. @pre 0 <= n < size()
  [[nodiscard]] client_id nth(std::int64_t n) const;
  /// What was loaded is a set of clients 0 .. clients - 1, and its counts are true.
  [[nodiscard]] bool is_sound(std::int64_t clients) const;
  template <class Archive>
  void persist(Archive& state) {
    state.plain(words_).plain(blocks_).plain(regions_)(size_);
  }

private:
  static constexpr std::size_t words_of_block = 8, blocks_of_region = 64; // 512 and 32,768 clients

  std::vector<std::uint64_t> words_;
  std::vector<std::uint32_t> blocks_, regions_; // how many bits of each are set
  std::int64_t size_ = 0;
};

} // namespace mneme
