#include "runtime/training/executor.hpp"
#include "runtime/base/check.hpp"
#include "runtime/base/exception_message.hpp"
#include "runtime/base/intra_op_threads.hpp"
#include "runtime/base/tuning.hpp"
#include "runtime/kernels/cuda/on_device.hpp"
#include "runtime/models/step_bytes.hpp"
#include "runtime/training/fused_training.hpp"
#include "runtime/training/inference.hpp"
#include "runtime/training/job_validation.hpp"
#include <ATen/Context.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <bit>
#include <charconv>
#include <cstdlib>
namespace mneme {
namespace {

/// Runs `act`. If it throws, sets `failed` and returns the exception's message as the outcome of every job.
template <class Act>
outcomes attempted(std::size_t jobs, bool& failed, Act act) {
  outcomes done;
  if (const auto reason = exception_message_of([&] { done = act(); }); !reason.empty()) {
    failed = true;
    return outcomes(jobs, job_outcome{reason});
  }
  return done;
}

class device_executor final : public executor {
public:
  device_executor(const at::Device& device, std::shared_ptr<feature_store> features,
                  std::shared_ptr<slice_store> slices)
      : images_(device), features_(std::move(features)), slices_(std::move(slices)),
        kept_(features_ ? features_->folder() : std::filesystem::path{},
              [to = features_](const diagnostics& problems) { to->record_damage(problems); }) {
    if (device.is_cpu())
      return;
    auto& kernels = at::globalContext(); // exact float32 and a fixed order of summation
    kernels.setAllowTF32CuDNN(false);
    kernels.setDeterministicCuDNN(true);
    kernels.setBenchmarkCuDNN(false);
    kernels.setDeterministicAlgorithms(true, /*warn_only=*/false);
    kernels.setDeterministicFillUninitializedMemory(false); // safe, because no code reads uninitialized memory
  }

  outcomes run(std::span<const job> batch, slice_monitor* monitor) override {
    MNEME_CHECK(!batch.empty());
    disable_intra_op_threads();
    if (images_.device().is_cuda())
      kernels::cuda::make_current(images_.device());
    images_.forget_unused();
    for (const auto& queued : batch)
      MNEME_CHECK(queued.request.index() == batch[0].request.index(), work_name(queued.request),
                  work_name(batch[0].request));
    if (std::holds_alternative<program_job>(batch[0].request))
      return run_programs(batch, images_, slices_.get(), monitor, &kept_);
    const at::NoGradGuard no_gradients;
    const at::AutoDispatchBelowADInplaceOrView no_tracking; // this guard also disables view tracking
    return std::holds_alternative<train_job>(batch[0].request) ? train(batch, monitor) : pass(batch, monitor);
  }

private:
  outcomes train(std::span<const job> batch, slice_monitor* monitor) {
    bool failed = false;
    auto results =
        attempted(batch.size(), failed, [&] { return fused_training(batch, images_, buffers_).run(monitor); });
    if (!failed)
      return results;
    buffers_ = {}; // the failure may have left the buffers in any state
    if (batch.size() == 1)
      return results;
    for (std::size_t i = 0; i < batch.size(); ++i)
      results[i] = std::move(train(batch.subspan(i, 1), monitor)[0]);
    return results;
  }

  /// Runs the jobs one by one. Each pass reads large blocks of rows, so fusing jobs gains nothing.
  outcomes pass(std::span<const job> batch, slice_monitor* monitor) {
    outcomes results;
    for (const auto& queued : batch) {
      bool failed = false;
      auto single = attempted(1, failed, [&] { return outcomes{work_output{output_of(queued.request, monitor)}}; });
      results.push_back(std::move(single[0]));
    }
    return results;
  }

  work_output output_of(const work& request, slice_monitor* monitor) {
    if (const auto reason = validate_rows(request); !reason.empty())
      throw std::invalid_argument(reason);
    if (const auto reason = validate_weights(request); !reason.empty())
      throw std::invalid_argument(reason);
    if (const auto* extract = std::get_if<extract_job>(&request))
      return run_inference(*extract, images_, features_.get(), monitor);
    if (const auto* statistics = std::get_if<statistics_job>(&request))
      return run_inference(*statistics, images_, features_.get(), monitor);
    if (const auto* computing = std::get_if<compute_job>(&request))
      return run_compute(*computing, images_.device());
    return run_inference(std::get<evaluate_job>(request), images_, features_.get(), monitor);
  }

  image_store images_;
  std::shared_ptr<feature_store> features_;
  std::shared_ptr<slice_store> slices_;
  outcome_store kept_; // stored in the folder of `features_`
  training_buffers buffers_;
};

/// Bytes that one fused job touches in a step; 0: jobs of this kind are not fused.
std::int64_t stacked_bytes(const work& request) {
  if (const auto* running = std::get_if<program_job>(&request))
    return running->body->stacked_bytes(*running);
  const auto* training = std::get_if<train_job>(&request);
  if (!training)
    return 0;
  const auto& options = training->options;
  const auto batch = options.result == training_result::row_norms ? 1 : options.batch_rows;
  const auto rows = (batch == 0 ? tuning::full_batch_rows : batch) + options.replay_rows;
  const auto float_bytes = static_cast<std::int64_t>(sizeof(float));
  return step_bytes(*training->net, rows) + optimizer::buffers(options) * training->net->size() * float_bytes;
}

/// Number of CUDA devices. A program without mneme's CUDA kernels lacks LibTorch's CUDA libraries, too
/// (tools/cmake/cuda.cmake).
std::int64_t cuda_devices() {
  return kernels::cuda::linked && at::hasCUDA() ? at::detail::getCUDAHooks().getNumGPUs() : 0;
}

} // namespace

std::unique_ptr<executor> make_executor(const std::string& device, std::shared_ptr<feature_store> features,
                                        std::shared_ptr<slice_store> slices) {
  return std::make_unique<device_executor>(at::Device(device), std::move(features), std::move(slices));
}

std::int64_t choose_width(const work& request, const std::string& device) {
  const auto bytes = stacked_bytes(request);
  if (bytes == 0)
    return 1; // jobs of this kind are not fused
  const auto& limits = at::Device(device).is_cpu() ? tuning::width_on_cpu : tuning::width_on_gpu;
  const auto fitting = static_cast<std::uint64_t>(std::max<std::int64_t>(limits.bytes_max / bytes, 1));
  return static_cast<std::int64_t>(std::min(std::bit_floor(fitting), limits.fused_clients_max));
}

tl::expected<std::string, std::string> resolve_device(const std::string& device) {
  const auto devices = cuda_devices();
  if (devices > 0) // avoids LibTorch's warning that cuBLAS's sums depend on its workspace
    ::setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", /*overwrite=*/0);
  if (device == "auto")
    return *kernels::cuda::fake_device_name ? kernels::cuda::fake_device_name : devices > 0 ? "cuda:0" : "cpu";
  if (device == "cpu")
    return device;
  const std::string prefix = "cuda:";
  std::int64_t index = -1;
  const auto* const end = device.data() + device.size();
  if (!device.starts_with(prefix) || std::from_chars(device.data() + prefix.size(), end, index).ptr != end || index < 0)
    return tl::unexpected("device \"" + device + "\" is none of \"auto\", \"cpu\", \"cuda:0\", \"cuda:1\", ...");
  if (!kernels::cuda::linked)
    return tl::unexpected("device \"" + device +
                          "\" cannot be used: this program was built without kernels for CUDA; " +
                          "install nvcc 13, run tools/bootstrap and build again, or use \"cpu\"");
  if (index >= devices)
    return tl::unexpected("device \"" + device + "\" was not found: " +
                          (devices == 0 ? "this machine has no CUDA device; \"auto\" uses the CPU then"
                                        : "CUDA devices are numbered 0 to " + std::to_string(devices - 1)));
  return device;
}

} // namespace mneme
