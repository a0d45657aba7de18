/// executor: runs fused batches of jobs on one device.
#pragma once
#include "runtime/method/jobs.hpp"
#include "runtime/training/feature_store.hpp"
#include "runtime/training/program_batch.hpp"
#include <span>
namespace mneme {

/// Not thread-safe: each worker owns one.
class executor {
public:
  virtual ~executor() = default;
  /// Returns one outcome per job, in the same order. The bits of an outcome do not depend on the other jobs of the
  /// batch. If the batch fails, its jobs run again one by one, so that only the outcome of the failing job is an error
  /// text.
  /// @pre `batch` is not empty; all fuse keys are equal
  /// @param monitor may interrupt the batch between steps, blocks and slices; interrupted jobs have the outcome
  /// interrupted_text. Null: all jobs run to their end
  [[nodiscard]] virtual outcomes run(std::span<const job> batch, slice_monitor* monitor = nullptr) = 0;
};

/// @param device "cpu" or "cuda:N" @param features, slices shared by all executors of a run; null: nothing is cached
[[nodiscard]] std::unique_ptr<executor> make_executor(const std::string& device,
                                                      std::shared_ptr<feature_store> features = nullptr,
                                                      std::shared_ptr<slice_store> slices = nullptr);

/// Number of jobs like `request` to fuse on `device`. The number depends only on net, options and kind of device, so
/// all nodes choose the same number.
[[nodiscard]] std::int64_t choose_width(const work& request, const std::string& device);

/// Resolves the scenario's `worker.device` to "cpu" or "cuda:N"; "auto" is cuda:0 if present, otherwise the CPU. Fails
/// if the text is malformed or the CUDA device is not available.
[[nodiscard]] tl::expected<std::string, std::string> resolve_device(const std::string& device);

} // namespace mneme
