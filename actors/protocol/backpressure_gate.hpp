/// backpressure_gate: pauses a node's workers while its send buffer is full.
#pragma once
#include <atomic>
#include <functional>
namespace mneme {

/// Shared by the workers of a node and its connection. Thread-safe.
class backpressure_gate {
public:
  /// @param is_full returns true if the unsent results have reached their limit
  explicit backpressure_gate(std::function<bool()> is_full) : is_full_(std::move(is_full)) {}
  /// Called by a worker before it computes. If true, the worker pauses until the node gateway wakes it.
  [[nodiscard]] bool should_wait() {
    const bool full = is_full();
    if (full)
      someone_waits_ = true;
    return full;
  }
  [[nodiscard]] bool is_full() const { return is_full_(); }
  /// True if a worker has paused since the last call.
  [[nodiscard]] bool take_waiting() { return someone_waits_.exchange(false); }

private:
  std::function<bool()> is_full_;
  std::atomic<bool> someone_waits_ = false;
};

} // namespace mneme
