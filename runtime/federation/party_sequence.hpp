/// party_sequence: iterates over the parties, the server first.
#pragma once
#include "runtime/federation/parties.hpp"
#include <vector>
namespace mneme {

class party_sequence {
public:
  /// @param further all parties except the server; must outlive this object
  explicit party_sequence(const std::vector<party_id>& further) : others_(further) {}

  /// Makes the server the current party.
  void begin() noexcept { asked_ = 0; }
  [[nodiscard]] party_id current() const { return asked_ == 0 ? party_id::server : others_.at(asked_ - 1); }
  /// Advances to the next party after the current party's reply. Returns false after the last party.
  [[nodiscard]] bool advance_party() noexcept {
    const bool has_next = asked_ < others_.size();
    asked_ = has_next ? asked_ + 1 : 0;
    return has_next;
  }

private:
  const std::vector<party_id>& others_;
  std::size_t asked_ = 0; // 0: the server; n: the n-th other party
};

} // namespace mneme
