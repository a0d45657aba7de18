/// party_turn: which party is asked, where all of them are asked in turn: the server first.
#pragma once
#include "runtime/federation/parties.hpp"
#include <vector>
namespace mneme {

class party_turn {
public:
  /// @param further the parties besides the server; outlives this
  explicit party_turn(const std::vector<party_id>& further) : further_(further) {}

  /// The server is asked.
  void begin() noexcept { asked_ = 0; }
  [[nodiscard]] party_id who() const { return asked_ == 0 ? party_id::server : further_.at(asked_ - 1); }
  /// It has answered. Returns whether there is another one, which is asked now.
  [[nodiscard]] bool goes_on() noexcept {
    const bool has_next = asked_ < further_.size();
    asked_ = has_next ? asked_ + 1 : 0;
    return has_next;
  }

private:
  const std::vector<party_id>& further_;
  std::size_t asked_ = 0; // 0: the server; n: the n-th of the others
};

} // namespace mneme
