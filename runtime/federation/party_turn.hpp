/// party_turn: iterates over the parties, the server first.
#pragma once
#include "runtime/federation/parties.hpp"
#include <vector>
namespace mneme {

class party_turn {
public:
  /// @param further the parties other than the server; must outlive this object
  explicit party_turn(const std::vector<party_id>& further) : further_(further) {}

  /// Makes the server the current party.
  void begin() noexcept { asked_ = 0; }
  [[nodiscard]] party_id who() const { return asked_ == 0 ? party_id::server : further_.at(asked_ - 1); }
  /// Moves on after the current party's reply. Returns false after the last party.
  [[nodiscard]] bool goes_on() noexcept {
    const bool has_next = asked_ < further_.size();
    asked_ = has_next ? asked_ + 1 : 0;
    return has_next;
  }

private:
  const std::vector<party_id>& further_;
  std::size_t asked_ = 0; // 0: the server; n: the n-th other party
};

} // namespace mneme
