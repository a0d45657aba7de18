/// parameter_list: parameters of a small net of a method, side by side in one tensor.
#pragma once
#include "runtime/base/rng.hpp"
#include <ATen/core/Tensor.h>
#include <vector>
namespace mneme {

/// Filled once, then const. A program takes gradients by the whole of it and reads its parts as views.
class parameter_list {
public:
  /// A parameter of this shape, drawn uniformly within +-bound; 0: it begins with zeros. Returns its place in parts().
  std::size_t add(std::vector<std::int64_t> shape, double bound);
  /// Weights [out, in] or [out, in, kernel, kernel] and biases [out] of a layer, drawn as PyTorch draws them: within
  /// 1 / sqrt(inputs of an output). Returns the place of the weights; the biases follow.
  std::size_t add_layer(const std::vector<std::int64_t>& shape, bool zeros = false);

  [[nodiscard]] std::int64_t size() const noexcept { return size_; }
  /// [size()] float32; a stream for each parameter.
  [[nodiscard]] at::Tensor initial(const rng_key& key) const;
  /// Views of `flat` [size()], in the order in which they were added; derivatives go through them.
  [[nodiscard]] std::vector<at::Tensor> parts(const at::Tensor& flat) const;

private:
  struct entry {
    std::vector<std::int64_t> shape{};
    std::int64_t size = 0;
    double bound = 0.0;
  };
  std::vector<entry> entries_;
  std::int64_t size_ = 0;
};

} // namespace mneme
