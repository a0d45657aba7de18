/// contest: one of our kernels and LibTorch's operations for the same work, side by side.
#pragma once
#include <ATen/core/Tensor.h>
#include <functional>
#include <string>
#include <vector>
namespace mneme::bench {

// K models: the first axis of every operand and of every result.

using operands = std::vector<at::Tensor>;

struct contest {
  std::string kernel{}; ///< Our kernel's name: "dot_product".
  std::string shape{};  ///< "10 x 784 -> 100"
  operands in{};        ///< Both read them, and change none.
  at::Tensor out{};     ///< Ours is written here; of the shape that theirs has.
  std::function<void(const operands&, at::Tensor&)> ours{};
  std::function<at::Tensor(const operands&)> theirs{};
};

/// What a contest has shown.
struct figures {
  double our_us = 0.0, their_us = 0.0;                  ///< Microseconds of a call for all models: the fastest of many.
  double ratio = 0.0, ratio_min = 0.0, ratio_max = 0.0; ///< Theirs to ours: median and ends of five turns.
  bool equal_bits = false;                              ///< Ours and theirs.
  // The bits of a model stay when its operands are moved within a cache line, and whatever other models are computed.
  bool ours_placed = false, theirs_placed = false; ///< True: they stay.
  bool ours_grouped = false, theirs_grouped = false;
};
/// Throws std::runtime_error where the two do not compute the same.
[[nodiscard]] figures held(const contest& pair);

/// Standard normal values.
[[nodiscard]] at::Tensor drawn(at::IntArrayRef sizes, std::uint64_t seed);

/// The contests by what they are about.
[[nodiscard]] std::vector<contest> product_contests();
[[nodiscard]] std::vector<contest> convolution_contests();
[[nodiscard]] std::vector<contest> image_contests(); ///< Pooling, normalisation, pixels.
[[nodiscard]] std::vector<contest> token_contests();
[[nodiscard]] std::vector<contest> training_contests(); ///< Activations, loss, optimizers, folding.

} // namespace mneme::bench
