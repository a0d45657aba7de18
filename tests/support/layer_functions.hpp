/// layer_functions: output and gradients of a single layer, computed by autograd.
#pragma once
#include "runtime/base/autograd_on.hpp"
#include "runtime/models/layer.hpp"
#include <ATen/ATen.h>
#include <numeric>
#include <torch/csrc/autograd/autograd.h>
#include <vector>
namespace mneme::test {

// Axes: K models, B rows, P weights.

struct function_of_layer {
  at::Tensor out;       ///< [K, B, width]
  at::Tensor d_in;      ///< [K, B, width before]
  at::Tensor d_weights; ///< [K, P]; NaN for weights that the layer does not read
};

/// Computes a layer. @param inputs input of the net; null: `in`
/// @param offsets of the layer's parameters in `weights`, ascending; empty: 0 to P - 1
inline function_of_layer run_function(const layer& tried, const at::Tensor& weights, const at::Tensor& in,
                                      const at::Tensor& d_out, class_range classes = {},
                                      const training_mode* training = nullptr, const at::Tensor* inputs = nullptr,
                                      std::vector<std::int64_t> offsets = {}) {
  const autograd_on tracking;
  if (offsets.empty()) {
    offsets.resize(static_cast<std::size_t>(weights.size(1)));
    std::iota(offsets.begin(), offsets.end(), 0);
  }
  std::vector<at::Tensor> leaves;
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    const auto end = i + 1 < offsets.size() ? offsets[i + 1] : weights.size(1);
    leaves.push_back(weights.narrow(1, offsets[i], end - offsets[i]).clone().requires_grad_(true));
  }
  const auto x = in.clone().requires_grad_(true);
  const function_pass pass{.parameters = leaves,
                           .offsets = offsets,
                           .models = in.size(0),
                           .rows = in.size(1),
                           .classes = classes,
                           .training = training,
                           .inputs = inputs ? inputs : &in};
  const auto out = tried.function(pass, x);
  auto all = leaves;
  all.push_back(x);
  auto gradients = out.requires_grad() ? torch::autograd::grad({out}, all, {d_out}, false, false, true)
                                       : std::vector<at::Tensor>(all.size());
  for (std::size_t i = 0; i < leaves.size(); ++i)
    if (!gradients[i].defined())
      gradients[i] = at::full_like(leaves[i], std::numeric_limits<float>::quiet_NaN());
  const auto d_in = gradients.back();
  gradients.pop_back();
  return {out.detach().contiguous(), d_in, at::cat(gradients, 1).detach()};
}

} // namespace mneme::test
