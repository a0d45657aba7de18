#include "runtime/modules/module_memory.hpp"
#include <algorithm>
#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/alloc_cpu.h>
#include <fmt/format.h>
#include <malloc.h>
#include <new>
namespace mneme {
namespace {

thread_local module_memory::counters memory_of_thread;

void take_bytes(std::size_t bytes) {
  auto& memory = memory_of_thread;
  if (bytes > static_cast<std::size_t>(std::max<std::int64_t>(memory.bytes_left, 0))) {
    memory.is_exceeded = true;
    throw std::bad_alloc();
  }
}

/// Wraps LibTorch's allocator and enforces the limit of the calling thread.
class limited_allocator final : public c10::Allocator {
public:
  c10::DataPtr allocate(std::size_t bytes) override {
    if (memory_of_thread.is_limited)
      take_bytes(bytes);
    void* const block = bytes > 0 ? c10::alloc_cpu(bytes) : nullptr;
    if (memory_of_thread.is_limited)
      memory_of_thread.bytes_left -= static_cast<std::int64_t>(::malloc_usable_size(block));
    return {block, block, &release, c10::Device(c10::kCPU)};
  }
  [[nodiscard]] c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* to, const void* from, std::size_t count) const override { default_copy_data(to, from, count); }

private:
  static void release(void* block) {
    if (memory_of_thread.is_limited)
      memory_of_thread.bytes_left += static_cast<std::int64_t>(::malloc_usable_size(block));
    c10::free_cpu(block);
  }
};

/// Installs the allocator; only the first call of the process has an effect. LibTorch's allocator still releases blocks
/// that were allocated earlier.
void install_limited_allocator() {
  constexpr std::uint8_t above_default = 200;
  static limited_allocator allocator;
  [[maybe_unused]] static const bool installed = (c10::SetCPUAllocator(&allocator, above_default), true);
}

} // namespace

std::int64_t module_memory::limit_of_pass(std::int64_t working_set, std::int64_t rows, std::int64_t row_bytes) {
  constexpr std::int64_t fixed_bytes = std::int64_t{1} << 30, row_bytes_max = std::int64_t{1} << 28, times = 3;
  return fixed_bytes + times * (working_set - rows * std::max<std::int64_t>(row_bytes - row_bytes_max, 0));
}

module_memory::module_memory(std::int64_t bytes_max) : bytes_max_(bytes_max), outer_(memory_of_thread) {
  install_limited_allocator();
  memory_of_thread = {.bytes_left = bytes_max, .is_limited = true};
}

module_memory::~module_memory() { memory_of_thread = outer_; }

bool module_memory::is_exceeded() const { return memory_of_thread.is_exceeded; }

std::string module_memory::error_of_pass(std::string error) const {
  return is_exceeded() ? fmt::format("it needs more than {} bytes of memory, the limit for its rows (docs/modules.md)",
                                     bytes_max_)
                       : error;
}

void module_memory::charge(std::int64_t bytes) {
  if (!memory_of_thread.is_limited)
    return;
  take_bytes(static_cast<std::size_t>(bytes));
  memory_of_thread.bytes_left -= bytes;
}

} // namespace mneme
