#include "runtime/kernels/cuda/launches.hpp"
namespace mneme::kernels::cuda {
namespace {

// The work of a kernel is in run_thread() of its argument; this file only computes the positions of threads. No two
// threads write to the same address, and no thread waits for another, so results do not depend on the shape of the
// grid.

template <class What>
__global__ void __launch_bounds__(block_threads) run(const __grid_constant__ What what) {
  const std::int64_t x = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  run_thread(what, {{x, static_cast<std::int64_t>(gridDim.x) * blockDim.x}, {blockIdx.y, gridDim.y}});
}

template <class What>
void start(const What& what, CUstream_st* stream) {
  const grid_shape grid = grid_of(what);
  run<<<dim3(static_cast<unsigned>(grid.blocks_x), static_cast<unsigned>(grid.blocks_y)), block_threads, 0, stream>>>(
      what);
}

} // namespace

void launch(const gathered_rows& what, CUstream_st* stream) { start(what, stream); }
void launch(const cross_entropy_group& what, CUstream_st* stream) { start(what, stream); }
void launch(const sgd_models& what, CUstream_st* stream) { start(what, stream); }
void launch(const adam_models& what, CUstream_st* stream) { start(what, stream); }
void launch(const squares_of_models& what, CUstream_st* stream) { start(what, stream); }
void launch(const clip_factors& what, CUstream_st* stream) { start(what, stream); }
void launch(const scaled_models& what, CUstream_st* stream) { start(what, stream); }
void launch(const folded_uploads& what, CUstream_st* stream) { start(what, stream); }
void launch(const folded_mean& what, CUstream_st* stream) { start(what, stream); }

} // namespace mneme::kernels::cuda
