/// adam: the optimizer of generators and of what they play against, within a program.
#pragma once
#include "runtime/method/program.hpp"
namespace mneme {

struct adam_rates {
  double rate = 1e-3, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  double decay = 0.0; ///< Times the weights, added to their gradients.
};

/// Weights of any shape under Adam (Kingma and Ba 2015, Algorithm 1), as PyTorch computes it: element by element, so
/// that the bits of one model of a stack do not depend on the others. Step after step it may be saved and loaded.
class adam {
public:
  adam() = default;
  explicit adam(at::Tensor weights);
  [[nodiscard]] const at::Tensor& weights() const { return weights_; }
  void step(const at::Tensor& gradient, const adam_rates& with);

  /// Row k of a stack as tensors NAME, NAME.first, NAME.second and NAME.steps.
  void save(const std::string& name, std::int64_t k, named_tensors& to) const;
  /// Rows of a stack, as save() left them: each goes on with the moments and the number of steps of its own.
  [[nodiscard]] static adam loaded(const std::string& name, std::span<const program_call> calls,
                                   tensor_map program_call::*from = &program_call::state);
  /// Adds moments of no steps for weights of `like`'s shape: NAME.first, NAME.second and NAME.steps.
  static void put_unmoved(const std::string& name, const at::Tensor& like, tensor_map& to);

private:
  /// A number that follows from the steps taken: one, or, of a loaded stack, one for each row.
  [[nodiscard]] at::Tensor by_row(double (*value)(double beta, double steps), double beta) const;

  at::Tensor weights_{}, first_{}, second_{}; // moments
  std::vector<std::int64_t> steps_{0};        // one for all, or one for each row
};

/// The names that an adam is saved under, NAME itself left out.
[[nodiscard]] std::vector<std::string> moment_names(const std::string& name);

} // namespace mneme
