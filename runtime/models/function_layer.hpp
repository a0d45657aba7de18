/// function_layer: a layer that is written once, as a function of LibTorch's operators whose gradients autograd takes.
#pragma once
#include "runtime/models/layer.hpp"
namespace mneme {

/// A network computes neighbouring layers of this kind as one function (network_runs.cpp). They need neither a backward
/// pass of their own nor a second definition for devices.
class function_layer : public layer {
public:
  [[nodiscard]] bool is_function(bool /*on_cpu*/) const final { return true; }
};

} // namespace mneme
