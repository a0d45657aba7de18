/// Kernels of devices as tests see them: on a device where there is one, thread by thread on the host everywhere.
#pragma once
#include "runtime/base/rng.hpp"
#include "runtime/kernels/cuda/thread_place.hpp"
#include "runtime/models/model.hpp"
#include "runtime/training/executor.hpp"
#include "runtime/training/folding.hpp"
#include <ATen/ATen.h> // before Catch2: both define CHECK, and the last one holds

#include <catch2/catch_test_macros.hpp>
namespace mneme::test {

/// Skips a test where this machine has no device.
#define MNEME_NEEDS_DEVICE(name)                                                                                       \
  if (!resolve_device("cuda:0"))                                                                                       \
    SKIP("needs a CUDA device; none was found");                                                                       \
  const at::Device name("cuda:0")

/// Runs the kernel of `what` as `threads_x` x `threads_y` threads would, last thread first: their order must not
/// matter.
template <class What>
void run_on_host(const What& what, std::int64_t threads_x, std::int64_t threads_y = 1) {
  for (auto y = threads_y; y-- > 0;)
    for (auto x = threads_x; x-- > 0;)
      run_thread(what, {.x = {x, threads_x}, .y = {y, threads_y}});
}
/// In the shape that a device would get.
template <class What>
void run_on_host(const What& what) {
  const auto grid = grid_of(what);
  run_on_host(what, grid.blocks_x * kernels::cuda::block_threads, grid.blocks_y);
}

/// Floats in -1 .. 1.
inline at::Tensor drawn_floats(at::IntArrayRef shape, std::uint64_t seed) {
  auto made = at::empty(shape);
  rng_stream draw({.seed = seed, .what = first_method_purpose});
  for (std::int64_t i = 0; i < made.numel(); ++i)
    made.mutable_data_ptr<float>()[i] = static_cast<float>(draw.uniform(-1.0, 1.0));
  return made;
}

/// Uploads of weights 11, 12, ... that begin `offset` floats after an aligned address.
inline std::vector<weighted_upload> drawn_uploads(std::size_t count, std::int64_t size, std::int64_t offset,
                                                  const at::Device& device = at::kCPU) {
  std::vector<weighted_upload> made;
  for (std::size_t i = 0; i < count; ++i)
    made.push_back({.values = drawn_floats({size + offset}, i).to(device).narrow(0, offset, size),
                    .weight = 11.0 + static_cast<double>(i)});
  return made;
}

/// The same as `models` x `size` whose rows lie `pitch` floats apart, as those of a fused group do.
inline at::Tensor drawn_rows(std::int64_t models, std::int64_t size, std::int64_t pitch, std::uint64_t seed) {
  return drawn_floats({models, pitch}, seed).narrow(1, 0, size);
}

/// Pieces of [size] that begin and end at any index: three of seven weights are trained, then all of the last ones.
inline std::vector<segment> odd_segments(std::int64_t size) {
  std::vector<segment> made;
  for (std::int64_t i = 0; i + 3 < std::min<std::int64_t>(size, 140); i += 7)
    made.push_back({i + 1, 3});
  const auto rest = std::min<std::int64_t>(size, 141);
  made.push_back({rest, size - rest});
  return made;
}

} // namespace mneme::test
