/// executor: runs fused batches of jobs on one device.
#pragma once
#include "runtime/method/jobs.hpp"
#include "runtime/training/feature_store.hpp"
#include "runtime/training/program_batch.hpp"
#include <span>
namespace mneme {

/// Not thread-safe: one owner, a worker.
class executor {
public:
  virtual ~executor() = default;
  /// Returns one outcome per job, in the same order. The bits of an outcome do not depend on the other jobs of the
  /// batch. If the whole batch fails, its jobs run again one by one, so that only the failing job's outcome is an error
  /// text.
  /// @pre not empty; all keys are equal
  /// @param watch may interrupt the batch between steps, blocks and slices; interrupted jobs have the outcome
  /// interrupted_text. Null: all jobs run to their end
  [[nodiscard]] virtual outcomes run(std::span<const job> batch, slice_watch* watch = nullptr) = 0;
};

/// @param device "cpu" or "cuda:N" @param features, slices shared by all executors of a run; null: nothing is
/// remembered
[[nodiscard]] std::unique_ptr<executor> make_executor(const std::string& device,
                                                      std::shared_ptr<feature_store> features = nullptr,
                                                      std::shared_ptr<slice_store> slices = nullptr);

/// How many jobs like `what` belong into one fused group on `device`: a function of net, options
/// and device kind only, so that every node chooses alike.
[[nodiscard]] std::int64_t chosen_width(const work& request, const std::string& device);

/// "cpu" or "cuda:N" for the scenario's `worker.device` ("auto": cuda:0 where there is one).
/// Fails where a CUDA device is asked for and there is none.
[[nodiscard]] tl::expected<std::string, std::string> resolve_device(const std::string& device);

} // namespace mneme
