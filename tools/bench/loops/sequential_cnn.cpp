// bare_cnn: the net of pfl-research's CIFAR-10 benchmark (Granqvist et al. 2024). It has two 3x3 convolutions without
// padding, 2x2 max-pooling, dropout and two linear layers.
#include "tools/bench/loops/sequential_loop.hpp"
#include <ATen/ops/conv2d.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/native_dropout.h>
#include <ATen/ops/relu.h>
namespace mneme::bench {
namespace {

at::Tensor dropped(const at::Tensor& x, double chance) { return std::get<0>(at::native_dropout(x, chance, true)); }

class bare_cnn_loop final : public bare_loop {
public:
  bare_cnn_loop(const workload& load, std::vector<at::Tensor> start)
      : bare_loop(load, std::move(start)), shape_(load.shape) {}

private:
  [[nodiscard]] at::Tensor forward(const at::Tensor& x, const std::vector<at::Tensor>& weights) const override {
    auto maps = x.view({x.size(0), shape_[0], shape_[1], shape_[2]}); // [B, C, H, W]
    maps = at::relu(at::conv2d(maps, weights[0], weights[1]));        // [B, 32, H - 2, W - 2]
    maps = at::relu(at::conv2d(maps, weights[2], weights[3]));        // [B, 64, H - 4, W - 4]
    maps = dropped(at::max_pool2d(maps, {2, 2}), 0.25);               // [B, 64, (H - 4) / 2, (W - 4) / 2]
    auto hidden = at::relu(at::linear(maps.flatten(1), weights[4], weights[5]));
    return at::linear(dropped(hidden, 0.5), weights[6], weights[7]);
  }

  std::vector<std::int64_t> shape_; // [C, H, W]
};

} // namespace

std::unique_ptr<training_loop> bare_cnn(const workload& load) {
  return std::make_unique<bare_cnn_loop>(load, first_cnn_weights(load));
}

} // namespace mneme::bench
