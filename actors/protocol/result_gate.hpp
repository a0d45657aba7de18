/// result_gate: keeps the workers of a node from making results faster than the network carries them away.
#pragma once
#include <atomic>
#include <functional>
namespace mneme {

/// Safe to use from several threads.
class result_gate {
public:
  /// @param is_full tells if as many results as there may be were given to the network and have not left
  explicit result_gate(std::function<bool()> is_full) : is_full_(std::move(is_full)) {}
  /// A worker asks before it computes; if so it waits to be told to go on.
  [[nodiscard]] bool holds_back() {
    const bool full = is_full();
    if (full)
      someone_waits_ = true;
    return full;
  }
  [[nodiscard]] bool is_full() const { return is_full_(); }
  /// True if a worker has been held back since the last call.
  [[nodiscard]] bool take_waiting() { return someone_waits_.exchange(false); }

private:
  std::function<bool()> is_full_;
  std::atomic<bool> someone_waits_ = false;
};

} // namespace mneme
