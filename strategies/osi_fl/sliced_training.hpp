/// sliced_training: base program that trains a small net by Adam, in slices between which it can be interrupted.
#pragma once
#include "runtime/method/program.hpp"
namespace mneme {

// Axes: P parameters of the net, n rows of the job.

/// AdamW (Loshchilov and Hutter 2019) with a linear warm-up and a cosine schedule.
struct adam_settings {
  double rate = 1e-3;
  double decay = 0.0;       ///< Decoupled weight decay.
  double last_share = 1.0;  ///< Final learning rate, as a share of `rate`; 1: constant rate.
  std::int64_t warm_up = 0; ///< Number of steps of the linear warm-up.
  double norm_max = 0.0;    ///< Gradients are clipped to this norm; 0: no clipping.
  bool averages = false;    ///< True: returns a running mean of the weights, with decay min(0.999, (i + 1) / (i + 10)).
};

/// Returns the learning rate of step `step` (from 0) of `steps`.
[[nodiscard]] double rate_of_step(const adam_settings& settings, std::int64_t step, std::int64_t steps);

/// Returns "weights" [P]. Calls of a batch are trained one after the other.
class sliced_training : public looped_program {
public:
  [[nodiscard]] std::vector<declared_tensor> outcome(const program_job& job) const override;

protected:
  explicit sliced_training(const adam_settings& settings) : settings_(settings) {}
  [[nodiscard]] slice_result run_call(const program_call& call) const final;

  /// Number of parameters P.
  [[nodiscard]] virtual std::int64_t size() const = 0;
  /// Returns the initial weights [P], float32 on the host.
  [[nodiscard]] virtual at::Tensor initial(const program_call& call) const = 0;
  /// Returns the number of steps of the training; at least 1.
  [[nodiscard]] virtual std::int64_t steps(const program_call& call) const = 0;
  /// Returns the loss [] of a step as a function of `weights` [P]. Random draws must depend only on the call and the
  /// step.
  [[nodiscard]] virtual at::Tensor loss(const program_call& call, const at::Tensor& weights,
                                        std::int64_t step) const = 0;
  /// Number of steps per slice; a slice should take a few seconds.
  [[nodiscard]] virtual std::int64_t steps_of_slice() const { return 50; }

private:
  adam_settings settings_;
};

/// Returns the row positions of step `step`. The rows are shuffled for every pass and cut into batches; the last batch
/// of a pass may be short. @param key of the shuffles; its index is overwritten
[[nodiscard]] std::vector<std::int64_t> positions_of_step(std::int64_t rows, std::int64_t batch, std::int64_t step,
                                                          rng_key key);
/// Returns the number of steps in `passes` such passes.
[[nodiscard]] std::int64_t steps_of_passes(std::int64_t rows, std::int64_t batch, std::int64_t passes);

/// Draws standard normal numbers, float32 on the host.
[[nodiscard]] at::Tensor normal_numbers(at::IntArrayRef shape, const rng_key& key);

} // namespace mneme
