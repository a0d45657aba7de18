/// function_layer: a layer that is defined once, as a differentiable function of LibTorch's operators.
#pragma once
#include "runtime/models/layer.hpp"
namespace mneme {

/// A network computes adjacent layers of this kind as one function (network_runs.cpp). Autograd computes their
/// gradients. They therefore need neither a hand-written backward pass nor a second definition for devices.
class function_layer : public layer {
public:
  [[nodiscard]] bool is_function(bool /*on_cpu*/) const final { return true; }
};

} // namespace mneme
