/// module_memory: limits the memory that a module's operators allocate on the calling thread.
#pragma once
#include <cstdint>
#include <string>
namespace mneme {

/// While an object of this class exists, LibTorch's CPU allocator throws std::bad_alloc on this thread if more than
/// `bytes_max` bytes would be in use. Earlier allocations do not count. LibTorch's interpreter may convert the
/// exception to another type; use is_exceeded() to detect it. Scopes nest; the innermost limit applies.
class module_memory {
public:
  static constexpr std::int64_t unlimited = std::int64_t{1} << 60;

  /// Limit in bytes for one model's pass over `rows` rows. The limit is generous: 1 GiB plus three times the bytes of
  /// all operator results and weights. At most 256 MiB of results are counted per row, because their sum may be far
  /// above the memory in use at one time.
  /// @param working_set bytes of weights, rows and operator results
  /// @param row_bytes bytes of all operator results for one row
  [[nodiscard]] static std::int64_t limit_of_pass(std::int64_t working_set, std::int64_t rows, std::int64_t row_bytes);

  /// @param bytes_max limit in bytes
  explicit module_memory(std::int64_t bytes_max);
  ~module_memory();
  module_memory(const module_memory&) = delete;
  module_memory& operator=(const module_memory&) = delete;

  [[nodiscard]] std::int64_t bytes_max() const noexcept { return bytes_max_; }
  /// True if an allocation failed because of this limit.
  [[nodiscard]] bool is_exceeded() const;
  /// Text about the limit of a pass if an allocation failed because of it, otherwise `error`.
  [[nodiscard]] std::string error_of_pass(std::string error) const;

  /// Counts memory outside of LibTorch's allocator towards this thread's limit, until the limit's scope ends. Throws
  /// std::bad_alloc if the limit is exceeded. No effect on a thread without a limit.
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
