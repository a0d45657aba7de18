/// party_turn: calls the parties one after another, the server first.
#pragma once
#include "runtime/federation/parties.hpp"
#include <vector>
namespace mneme {

class party_turn {
public:
  /// @param further parties after the server; must outlive this object
  explicit party_turn(const std::vector<party_id>& further) : further_(further) {}

  /// Starts with the server.
  void begin() noexcept { asked_ = 0; }
  [[nodiscard]] party_id who() const { return asked_ == 0 ? party_id::server : further_.at(asked_ - 1); }
  /// The current party has replied. Moves to the next party; returns false after the last one.
  [[nodiscard]] bool goes_on() noexcept {
    const bool has_next = asked_ < further_.size();
    asked_ = has_next ? asked_ + 1 : 0;
    return has_next;
  }

private:
  const std::vector<party_id>& further_;
  std::size_t asked_ = 0; // 0: server; n: n-th other party
};

} // namespace mneme
