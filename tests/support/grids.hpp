/// grids: runs device kernels thread by thread on the host.
#pragma once
#include "runtime/base/rng.hpp"
#include "runtime/kernels/cuda/thread_index.hpp"
#include <ATen/ATen.h>
namespace mneme::test {

/// Runs the kernel of `what` with `threads_x` x `threads_y` threads, last thread first, because their order must not
/// matter.
template <class What>
void run_on_host(const What& kernel, std::int64_t threads_x, std::int64_t threads_y = 1) {
  for (auto y = threads_y; y-- > 0;)
    for (auto x = threads_x; x-- > 0;)
      run_thread(kernel, {.x = {x, threads_x}, .y = {y, threads_y}});
}
/// Runs the kernel with the grid shape that a device would use.
template <class What>
void run_on_host(const What& kernel) {
  const auto grid = grid_of(kernel);
  run_on_host(kernel, grid.blocks_x * kernels::cuda::block_threads, grid.blocks_y);
}

/// Floats in [-1, 1).
inline at::Tensor drawn_floats(at::IntArrayRef shape, std::uint64_t seed) {
  auto made = at::empty(shape);
  rng_stream draw({.seed = seed, .purpose = first_method_purpose});
  for (std::int64_t i = 0; i < made.numel(); ++i)
    made.mutable_data_ptr<float>()[i] = static_cast<float>(draw.uniform(-1.0, 1.0));
  return made;
}

/// Rows of a `models` x `size` matrix with a stride of `pitch` floats, as in a fused group.
inline at::Tensor drawn_rows(std::int64_t models, std::int64_t size, std::int64_t pitch, std::uint64_t seed) {
  return drawn_floats({models, pitch}, seed).narrow(1, 0, size);
}

} // namespace mneme::test
