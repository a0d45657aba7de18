/// module_files: exported programs as files, and modules that tests load from them.
#pragma once
#include "runtime/modules/module_net.hpp"
#include "tests/support/exported_programs.hpp"
#include "tests/support/scratch.hpp"
namespace mneme::test {

/// Gives access to the default arguments of model::forward().
inline const model& as_model(const std::shared_ptr<const module_net>& net) { return *net; }

inline void write_module(const std::filesystem::path& file, const made_program& program) {
  write_file(file, program.bytes());
}

/// Distinct numbers around 0.
inline at::Tensor spread_numbers(at::IntArrayRef shape, double scale = 1.0) {
  const auto count = c10::multiply_integers(shape);
  return (at::arange(count, at::kFloat) * 0.7548776662).frac_().sub_(0.5).mul_(scale).view(shape);
}

/// Adds torch.flatten(value, 1).
inline json flattened(made_program& made, const json& value) {
  return made.call("flatten.using_ints", {{"self", value}, {"start_dim", number(1)}});
}

/// Flattened rows times the parameter `scale` [36]: [B, 1, 6, 6] -> [B, 36].
inline made_program scaled_rows(const at::Tensor& scale = at::ones({36})) {
  made_program made;
  const auto flat = flattened(made, tensor_named("x"));
  made.call("mul.Tensor", {{"self", flat}, {"other", made.parameter("scale", scale)}});
  return made;
}

/// 3x3 convolution with 4 filters, shift by a buffer, ReLU, 2x2 mean pooling, flatten: [B, 1, 6, 6] -> [B, 36].
inline made_program small_convolution(float mean = 0.1F) {
  made_program made;
  const auto weight = made.parameter("weight", spread_numbers({4, 1, 3, 3}));
  const auto conv = made.call("conv2d.default", {{"input", tensor_named("x")},
                                                 {"weight", weight},
                                                 {"bias", made.parameter("bias", spread_numbers({4}))},
                                                 {"stride", numbers({1, 1})},
                                                 {"padding", numbers({1, 1})}});
  const auto shifted =
      made.call("sub.Tensor", {{"self", conv}, {"other", made.buffer("mean", at::full({1, 4, 1, 1}, mean))}});
  const auto active = made.call("relu.default", {{"self", shifted}});
  flattened(made, made.call("avg_pool2d.default", {{"self", active}, {"kernel_size", numbers({2, 2})}}));
  return made;
}

} // namespace mneme::test
