/// kernel_comparison: compares one of mneme's kernels with LibTorch operations that do the same work.
#pragma once
#include <ATen/core/Tensor.h>
#include <functional>
#include <string>
#include <vector>
namespace mneme::bench {

// Axis: K models, the first axis of every operand and result.

using operands = std::vector<at::Tensor>;

struct kernel_comparison {
  std::string kernel{}; ///< Our kernel's name: "dot_product".
  std::string shape{};  ///< "10 x 784 -> 100"
  operands in{};        ///< Operands that both sides read.
  at::Tensor out{};     ///< Receives mneme's result; has the shape of LibTorch's result.
  std::function<void(const operands&, at::Tensor&)> ours{};
  std::function<at::Tensor(const operands&)> theirs{};
};

/// Result of a comparison.
struct figures {
  double our_us = 0.0, their_us = 0.0; ///< Microseconds per call for all models; the minimum over many calls.
  double ratio = 0.0, ratio_min = 0.0, ratio_max = 0.0; ///< LibTorch's time divided by mneme's: median and range of
                                                        ///< five runs.
  bool equal_bits = false;                              ///< true: both results are bitwise equal.
  // True if a model's bits depend neither on the alignment of its operands (placed) nor on the other models (grouped).
  bool ours_placed = false, theirs_placed = false;
  bool ours_grouped = false, theirs_grouped = false;
};
/// Runs a comparison. Throws std::runtime_error if the results differ too much.
[[nodiscard]] figures compare_kernels(const kernel_comparison& pair);

/// Standard normal values.
[[nodiscard]] at::Tensor drawn(at::IntArrayRef sizes, std::uint64_t seed);

/// All comparisons, grouped by subject.
[[nodiscard]] std::vector<kernel_comparison> product_contests();
[[nodiscard]] std::vector<kernel_comparison> convolution_contests();
[[nodiscard]] std::vector<kernel_comparison> image_contests(); ///< Pooling, normalization, pixels.
[[nodiscard]] std::vector<kernel_comparison> token_contests();
[[nodiscard]] std::vector<kernel_comparison> training_contests(); ///< Activations, loss, optimizers, folding.

} // namespace mneme::bench
