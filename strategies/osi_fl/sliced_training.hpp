/// sliced_training: a program that trains a small net of a method by Adam, in slices between which it can be stopped.
#pragma once
#include "runtime/method/program.hpp"
namespace mneme {

// Axes: P parameters of the net, n rows of the job.

/// AdamW (Loshchilov and Hutter 2019) with a rate that rises over the first steps and then follows a cosine.
struct adam_settings {
  double rate = 1e-3;
  double decay = 0.0;       ///< Decoupled weight decay.
  double last_share = 1.0;  ///< The rate ends at so much of itself; 1: it is constant.
  std::int64_t warm_up = 0; ///< Steps in which it rises from 0.
  double norm_max = 0.0;    ///< Gradients are clipped to this norm; 0: they are not.
  bool averages = false;    ///< The outcome is a running mean of the weights, its decay min(0.999, (i + 1) / (i + 10)).
};

/// Rate of step `step` (from 0) of `steps`.
[[nodiscard]] double rate_of_step(const adam_settings& with, std::int64_t step, std::int64_t steps);

/// Ends with "weights" [P]. Calls are trained one after the other.
class sliced_training : public looped_program {
public:
  [[nodiscard]] std::vector<declared_tensor> outcome(const program_job& job) const override;

protected:
  explicit sliced_training(const adam_settings& with) : with_(with) {}
  [[nodiscard]] program_step run_call(const program_call& call) const final;

  /// P
  [[nodiscard]] virtual std::int64_t size() const = 0;
  /// The weights to begin with, [P] float32 on the host.
  [[nodiscard]] virtual at::Tensor initial(const program_call& call) const = 0;
  /// Steps of the whole training; at least one.
  [[nodiscard]] virtual std::int64_t steps(const program_call& call) const = 0;
  /// The loss of a step as a function of `weights` [P]. What it draws is keyed by the step.
  [[nodiscard]] virtual at::Tensor loss(const program_call& call, const at::Tensor& weights,
                                        std::int64_t step) const = 0;
  /// Steps between two chances to stop: seconds.
  [[nodiscard]] virtual std::int64_t steps_of_slice() const { return 50; }

private:
  adam_settings with_;
};

/// The positions of step `step` where `rows` rows are shuffled anew for every pass and cut into batches; the last of a
/// pass may be shorter. @param key of the shuffles: its index is overwritten
[[nodiscard]] std::vector<std::int64_t> positions_of_step(std::int64_t rows, std::int64_t batch, std::int64_t step,
                                                          rng_key key);
/// Steps of `passes` such passes.
[[nodiscard]] std::int64_t steps_of_passes(std::int64_t rows, std::int64_t batch, std::int64_t passes);

/// Standard normal numbers of a key, float32 on the host.
[[nodiscard]] at::Tensor normal_numbers(at::IntArrayRef shape, const rng_key& key);

} // namespace mneme
