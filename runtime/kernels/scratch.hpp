/// scratch: working memory of kernels, reused between calls to avoid page faults.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
namespace mneme::kernels {

/// Used by one thread at a time. Contents are undefined between calls.
class scratch {
public:
  /// Returns at least `floats` floats, aligned to a cache line; slots do not overlap. Contents are undefined.
  [[nodiscard]] float* take(std::size_t slot, std::int64_t floats) {
    constexpr std::int64_t line_floats = 16;
    auto& memory = slots_.at(slot);
    if (memory.floats < floats)
      memory = {floats, std::unique_ptr<float[]>(new float[static_cast<std::size_t>(floats + line_floats)])};
    const auto beyond = reinterpret_cast<std::uintptr_t>(memory.memory.get()) / sizeof(float) % line_floats;
    return memory.memory.get() + (line_floats - beyond);
  }

private:
  struct slot_memory {
    std::int64_t floats = 0;
    std::unique_ptr<float[]> memory{};
  };
  std::array<slot_memory, 5> slots_{};
};

} // namespace mneme::kernels
