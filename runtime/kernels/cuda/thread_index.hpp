/// thread_index: position of a thread in its grid, and helpers with which tests run a kernel on the host, thread by
/// thread.
#pragma once
#include <cstdint>
#if defined(__CUDACC__)
#define MNEME_HOST_DEVICE __host__ __device__
#else
#define MNEME_HOST_DEVICE
#endif
namespace mneme::kernels::cuda {

/// Indices that a thread processes: first, first + step, first + 2 * step, ...
struct share {
  std::int64_t first = 0, step = 1;
};
/// Work of a thread along x and y.
struct thread_index {
  share x{}, y{};
};

/// Number of blocks along x and y. x is the contiguous axis, so neighboring threads read neighboring addresses.
struct grid_shape {
  std::int64_t blocks_x = 1, blocks_y = 1;
};
inline constexpr std::int64_t block_threads = 256;
/// This number of blocks fills any device. If there are more work items than threads, each thread processes several.
inline constexpr std::int64_t blocks_max = 8192;

/// Grid for `columns` x `rows` work items, one per thread.
inline grid_shape grid_for(std::int64_t columns, std::int64_t rows = 1) {
  const auto within = [](std::int64_t size, std::int64_t most) { return size < 1 ? 1 : size < most ? size : most; };
  const auto blocks_x = within((columns + block_threads - 1) / block_threads, blocks_max);
  return {blocks_x, within(rows, blocks_max / blocks_x)};
}

/// Unit that a device reads or writes in one instruction if the address is a multiple of its size.
struct alignas(16) four_floats {
  float at[4];
};
struct alignas(16) two_doubles {
  double at[2];
};
struct alignas(4) four_bytes {
  std::uint8_t at[4];
};
inline bool is_aligned(const void* address, std::uintptr_t bytes) {
  return reinterpret_cast<std::uintptr_t>(address) % bytes == 0;
}

} // namespace mneme::kernels::cuda
