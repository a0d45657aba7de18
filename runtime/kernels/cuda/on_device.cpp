#include "runtime/kernels/cuda/on_device.hpp"
#include "runtime/kernels/cuda/launches.hpp"
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
namespace mneme::kernels::cuda {

void make_current(const c10::Device& device) { C10_CUDA_CHECK(c10::cuda::SetDevice(device.index(), /*force=*/true)); }

template <class Launch>
void start_on_cuda(const c10::Device& device, const Launch& parameters) {
  const c10::cuda::CUDAGuard chosen(device);
  launch(parameters, c10::cuda::getCurrentCUDAStream(device.index()).stream());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

template void start_on_cuda(const c10::Device&, const gathered_rows&);
template void start_on_cuda(const c10::Device&, const cross_entropy_group&);
template void start_on_cuda(const c10::Device&, const sgd_models&);
template void start_on_cuda(const c10::Device&, const adam_models&);
template void start_on_cuda(const c10::Device&, const squares_of_models&);
template void start_on_cuda(const c10::Device&, const clip_factors&);
template void start_on_cuda(const c10::Device&, const scaled_models&);
template void start_on_cuda(const c10::Device&, const folded_uploads&);
template void start_on_cuda(const c10::Device&, const folded_mean&);

} // namespace mneme::kernels::cuda
