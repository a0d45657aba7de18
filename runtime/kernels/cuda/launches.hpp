/// launches: starts kernels from the host. A launch returns immediately; the caller has selected the device.
#pragma once
#include "runtime/kernels/cuda/cross_entropy_rows.hpp"
#include "runtime/kernels/cuda/fold_uploads.hpp"
#include "runtime/kernels/cuda/gather_pixels.hpp"
#include "runtime/kernels/cuda/optimizer_steps.hpp"

struct CUstream_st; // cudaStream_t is a pointer to this type
namespace mneme::kernels::cuda {

// All addresses are in memory of the stream's device.
void launch(const gathered_rows& what, CUstream_st* stream);
void launch(const cross_entropy_group& what, CUstream_st* stream);
void launch(const sgd_models& what, CUstream_st* stream);
void launch(const adam_models& what, CUstream_st* stream);
void launch(const squares_of_models& what, CUstream_st* stream);
void launch(const clip_factors& what, CUstream_st* stream);
void launch(const scaled_models& what, CUstream_st* stream);
void launch(const folded_uploads& what, CUstream_st* stream);
void launch(const folded_mean& what, CUstream_st* stream);

} // namespace mneme::kernels::cuda
