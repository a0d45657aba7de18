/// script_modules: TorchScript modules created by tests.
#pragma once
#include "runtime/modules/module_net.hpp"
#include <ATen/ATen.h>
#include <algorithm>
#include <filesystem>
#include <string>
#include <torch/csrc/jit/api/module.h>
#include <vector>
namespace mneme::test {

/// Gives access to the default arguments of model::forward().
inline const model& as_model(const std::shared_ptr<const module_net>& net) { return *net; }

/// Module of one class: its methods in Python, and its tensor members.
struct module_text {
  std::string code{};
  std::vector<std::pair<std::string, at::Tensor>> parameters{}, buffers{};
  std::vector<std::string> frozen{}; ///< Parameters with requires_grad = False.
};

/// Writes the module in the format of torch.jit.save.
inline void write_module(const std::filesystem::path& file, const module_text& text) {
  torch::jit::Module made("made");
  for (const auto& [name, value] : text.parameters) {
    const bool trains = std::find(text.frozen.begin(), text.frozen.end(), name) == text.frozen.end();
    made.register_parameter(name, value.detach().set_requires_grad(trains && value.is_floating_point()), false);
  }
  for (const auto& [name, value] : text.buffers)
    made.register_buffer(name, value);
  made.define(text.code);
  made.save(file.string());
}

/// Distinct numbers around 0.
inline at::Tensor spread_numbers(at::IntArrayRef shape, double scale = 1.0) {
  const auto count = c10::multiply_integers(shape);
  return (at::arange(count, at::kFloat) * 0.7548776662).frac_().sub_(0.5).mul_(scale).view(shape);
}

/// 3x3 convolution with 4 filters, shift by a buffer, ReLU, 2x2 mean pooling, flatten: [B, 1, 6, 6] -> [B, 36].
inline module_text small_convolution() {
  return {.code = R"(
def forward(self, x):
    x = torch.conv2d(x, self.weight, self.bias, [1, 1], [1, 1])
    x = torch.relu(x - self.mean)
    return torch.flatten(torch.avg_pool2d(x, [2, 2]), 1)
)",
          .parameters = {{"weight", spread_numbers({4, 1, 3, 3})}, {"bias", spread_numbers({4})}},
          .buffers = {{"mean", at::full({1, 4, 1, 1}, 0.1F)}}};
}

} // namespace mneme::test
