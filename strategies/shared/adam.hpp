/// adam: the Adam optimizer for programs that train generators, inverted images and their opponents.
#pragma once
#include "runtime/method/program.hpp"
namespace mneme {

/// Hyperparameters of one step.
struct adam_rates {
  double rate = 1e-3, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  double decay = 0.0; ///< L2 penalty: decay * weights is added to the gradient.
};

/// Weights of any shape with their Adam moments (Kingma and Ba 2015, Algorithm 1). Results equal those of PyTorch. All
/// operations are elementwise, so the result for a model does not depend on the other models of its stack. The state
/// can be saved and loaded between any two steps.
class adam {
public:
  adam() = default;
  explicit adam(at::Tensor weights);
  [[nodiscard]] const at::Tensor& weights() const { return weights_; }
  /// Performs one step. @param gradient has the shape of weights()
  void step(const at::Tensor& gradient, const adam_rates& rates);

  /// Writes row k of a stack as the tensors NAME, NAME.first, NAME.second and NAME.steps.
  void save(const std::string& name, std::int64_t k, named_tensors& to) const;
  /// Stacks the states that save() wrote, one per call. Every row keeps its own moments and step count.
  [[nodiscard]] static adam loaded(const std::string& name, std::span<const program_call> calls,
                                   tensor_map program_call::*from = &program_call::state);
  /// Adds the initial state for weights of the shape of `like`: zero NAME.first and NAME.second, and NAME.steps = 0.
  static void put_initial_moments(const std::string& name, const at::Tensor& like, tensor_map& to);

private:
  /// Returns value(beta, steps) for the step counts: a scalar, or one number per row of a loaded stack.
  [[nodiscard]] at::Tensor by_row(double (*value)(double beta, double steps), double beta) const;

  at::Tensor weights_{}, first_{}, second_{}; // weights and both moments, of equal shape
  std::vector<std::int64_t> steps_{0};        // one count for all rows, or one per row
};

/// Returns the names of an optimizer's saved tensors, except NAME itself.
[[nodiscard]] std::vector<std::string> moment_names(const std::string& name);

} // namespace mneme
