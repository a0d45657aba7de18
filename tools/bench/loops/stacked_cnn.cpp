// stacked_cnn: the CNN of bare_cnn for K stacked clients, with grouped convolutions (K groups) and autograd.
#include "tools/bench/loops/stacked.hpp"
#include <ATen/ATen.h>
namespace mneme::bench {
namespace {

/// Initial weights as in bare_cnn, but with linear layers in the shapes [in, out] and [1, out].
std::vector<at::Tensor> transposed_weights(const workload& load) {
  auto tensors = first_cnn_weights(load);
  for (std::size_t i = 4; i < tensors.size(); ++i)
    tensors[i] = tensors[i].dim() == 2 ? tensors[i].t().contiguous() : tensors[i].unsqueeze(0);
  return tensors;
}

at::Tensor dropped(const at::Tensor& x, double chance) { return std::get<0>(at::native_dropout(x, chance, true)); }

class stacked_cnn_loop final : public stacked_loop {
public:
  explicit stacked_cnn_loop(const workload& load) : stacked_loop(load, transposed_weights(load)) {
    for (auto& tensor : weights_)
      tensor.requires_grad_(true);
  }

private:
  /// Convolution and ReLU of feature maps [B, K * C, H, W].
  [[nodiscard]] at::Tensor convolved(const at::Tensor& maps, std::size_t layer) const {
    return at::relu(at::conv2d(maps, weights_[layer].flatten(0, 1), weights_[layer + 1].flatten(0, 1), {1, 1},
                               at::IntArrayRef{0, 0}, {1, 1}, workload_.width));
  }

  void take_step(const at::Tensor& x, const at::Tensor& labels) override {
    const auto& shape = workload_.shape;
    auto maps = x.transpose(0, 1).reshape({workload_.batch, workload_.width * shape[0], shape[1], shape[2]});
    maps = convolved(convolved(maps, 0), 2);
    maps = dropped(at::max_pool2d(maps, {2, 2}), 0.25);
    const auto pixels = maps.view({workload_.batch, workload_.width, -1}).transpose(0, 1); // [K, B, 64 * h * w]
    const auto hidden = at::relu(at::baddbmm(weights_[5], pixels, weights_[4]));           // [K, B, 128]
    step_by_autograd(at::baddbmm(weights_[7], dropped(hidden, 0.5), weights_[6]), labels);
  }
};

} // namespace

std::unique_ptr<training_loop> stacked_cnn(const workload& load) { return std::make_unique<stacked_cnn_loop>(load); }

} // namespace mneme::bench
