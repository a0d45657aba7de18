/// module_memory: a limit on the memory that operators of a module take on the calling thread.
#pragma once
#include <cstdint>
namespace mneme {

/// While it lives, LibTorch's CPU allocator throws std::bad_alloc on this thread rather than hold more than `bytes_max`
/// at a time. Memory that was taken before does not count. The exception may reach the caller as another one, since
/// LibTorch's interpreter turns every exception into a text: ask is_exceeded(). Limits nest; the inner one counts.
class module_memory {
public:
  static constexpr std::int64_t unlimited = std::int64_t{1} << 60;

  explicit module_memory(std::int64_t bytes_max);
  ~module_memory();
  module_memory(const module_memory&) = delete;
  module_memory& operator=(const module_memory&) = delete;

  [[nodiscard]] std::int64_t bytes_max() const noexcept { return bytes_max_; }
  /// True if an allocation was refused.
  [[nodiscard]] bool is_exceeded() const;

  /// Counts memory that LibTorch's allocator does not see, until the limit of this thread ends. Throws std::bad_alloc
  /// beyond it. Does nothing on a thread without a limit.
  static void charge(std::int64_t bytes);

  struct counters {
    std::int64_t bytes_left = 0;
    bool is_limited = false, is_exceeded = false;
  };

private:
  std::int64_t bytes_max_;
  counters outer_;
};

} // namespace mneme
