// bare_mlp: an MLP with layers of F, `hidden` and `classes` units, and ReLU.
#include "tools/bench/loops/sequential_loop.hpp"
#include <ATen/ops/linear.h>
#include <ATen/ops/relu.h>
namespace mneme::bench {
namespace {

class bare_mlp_loop final : public bare_loop {
public:
  using bare_loop::bare_loop;

private:
  [[nodiscard]] at::Tensor forward(const at::Tensor& x, const std::vector<at::Tensor>& weights) const override {
    return at::linear(at::relu(at::linear(x, weights[0], weights[1])), weights[2], weights[3]);
  }
};

} // namespace

std::unique_ptr<training_loop> bare_mlp(const workload& load) {
  return std::make_unique<bare_mlp_loop>(load, first_mlp_weights(load));
}

} // namespace mneme::bench
