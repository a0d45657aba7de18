#include "tools/bench/loops/sequential_loop.hpp"
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/zeros_like.h>
namespace mneme::bench {

bare_loop::bare_loop(const workload& load, std::vector<at::Tensor> start)
    : workload_(load), population_(make_population(load)), start_(std::move(start)) {
  const at::Device device(load.device);
  population_ = {.images = population_.images.to(device), .labels = population_.labels.to(device)};
  for (auto& tensor : start_) {
    tensor = tensor.to(device);
    weights_.push_back(tensor.clone().requires_grad_(true));
    sum_.push_back(at::zeros_like(tensor));
  }
}

void bare_loop::round(std::int64_t number, std::span<const std::int64_t> cohort) {
  for (const auto client : cohort) {
    auto order = visiting_order(workload_, number, client);
    {
      const at::NoGradGuard no_gradients;
      for (std::size_t i = 0; i < start_.size(); ++i)
        weights_[i].copy_(start_[i]);
    }
    train(at::from_blob(order.data(), {workload_.rows}, at::kLong).to(at::Device(workload_.device)));
    const at::NoGradGuard no_gradients;
    for (std::size_t i = 0; i < sum_.size(); ++i)
      sum_[i].add_(weights_[i]);
  }
  for (std::size_t i = 0; i < sum_.size(); ++i) {
    start_[i].copy_(sum_[i]).div_(static_cast<double>(cohort.size()));
    sum_[i].zero_();
  }
}

void bare_loop::train(const at::Tensor& rows) {
  for (std::int64_t first = 0; first < workload_.rows; first += workload_.batch) {
    const auto batch = rows.narrow(0, first, workload_.batch);
    const auto logits = forward(population_.images.index_select(0, batch), weights_); // [B, classes]
    at::cross_entropy_loss(logits, population_.labels.index_select(0, batch)).backward();
    const at::NoGradGuard no_gradients;
    for (auto& tensor : weights_) {
      tensor.sub_(tensor.grad(), workload_.learning_rate);
      tensor.mutable_grad().reset();
    }
  }
}

double bare_loop::weights_norm() const { return norm_of(start_); }

} // namespace mneme::bench
