// stacked_mlp: the MLP for K stacked clients, with one batched matrix product per layer and with autograd or manual
// gradients.
#include "tools/bench/loops/stacked.hpp"
#include <ATen/ATen.h>
namespace mneme::bench {
namespace {

/// Initial weights [F, H], [1, H], [H, classes], [1, classes], which is the layout for batched products.
std::vector<at::Tensor> transposed_weights(const workload& load) {
  auto tensors = first_mlp_weights(load);
  for (auto& tensor : tensors)
    tensor = tensor.dim() == 2 ? tensor.t().contiguous() : tensor.unsqueeze(0);
  return tensors;
}

class stacked_with_autograd final : public stacked_loop {
public:
  explicit stacked_with_autograd(const workload& load) : stacked_loop(load, transposed_weights(load)) {
    for (auto& tensor : weights_)
      tensor.requires_grad_(true);
  }

private:
  void take_step(const at::Tensor& x, const at::Tensor& labels) override {
    const auto hidden = at::relu(at::baddbmm(weights_[1], x, weights_[0])); // [K, B, H]
    step_by_autograd(at::baddbmm(weights_[3], hidden, weights_[2]), labels);
  }
};

/// Softmax over the classes of logits [K, B, classes].
using softmax_function = at::Tensor (*)(at::Tensor logits);
at::Tensor softmax_operator(at::Tensor logits) { return at::softmax(logits, 2); }
/// Softmax with elementary operators, in place: LibTorch's softmax is slow for a short axis.
at::Tensor softmax_written_out(at::Tensor logits) {
  logits.sub_(logits.amax(2, true)).exp_();
  return logits.div_(logits.sum(2, true));
}

class stacked_by_hand final : public stacked_loop {
public:
  stacked_by_hand(const workload& load, softmax_function softmax)
      : stacked_loop(load, transposed_weights(load)), softmax_(softmax), one_hot_(at::eye(load.classes, at::kFloat)),
        rate_(load.learning_rate / static_cast<double>(load.batch)) {}

private:
  void take_step(const at::Tensor& x, const at::Tensor& labels) override {
    const auto hidden = at::baddbmm(weights_[1], x, weights_[0]).relu_(); // [K, B, H]
    auto error = softmax_(at::baddbmm(weights_[3], hidden, weights_[2])); // [K, B, classes]
    error.sub_(one_hot_.index_select(0, labels).view_as(error));
    const auto inner = at::threshold_backward(at::bmm(error, weights_[2].transpose(1, 2)), hidden, 0); // [K, B, H]
    // Only the step needs the gradient, so the product adds it directly to the weights.
    weights_[2].baddbmm_(hidden.transpose(1, 2), error, 1, -rate_);
    weights_[3].sub_(error.sum(1, true), rate_);
    weights_[0].baddbmm_(x.transpose(1, 2), inner, 1, -rate_);
    weights_[1].sub_(inner.sum(1, true), rate_);
  }

  softmax_function softmax_;
  at::Tensor one_hot_; // [classes, classes]
  double rate_;        // step size for a gradient summed over a batch
};

} // namespace

std::unique_ptr<training_loop> stacked_mlp_autograd(const workload& load) {
  return std::make_unique<stacked_with_autograd>(load);
}
std::unique_ptr<training_loop> stacked_mlp_by_hand(const workload& load) {
  return std::make_unique<stacked_by_hand>(load, softmax_operator);
}
std::unique_ptr<training_loop> stacked_mlp_tuned(const workload& load) {
  return std::make_unique<stacked_by_hand>(load, softmax_written_out);
}

} // namespace mneme::bench
