#include "tools/bench/loops/bare.hpp"
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/zeros_like.h>
namespace mneme::bench {

bare_loop::bare_loop(const workload& what, std::vector<at::Tensor> start)
    : what_(what), all_(made_population(what)), start_(std::move(start)) {
  for (const auto& one : start_) {
    weights_.push_back(one.clone().requires_grad_(true));
    sum_.push_back(at::zeros_like(one));
  }
}

void bare_loop::round(std::int64_t number, std::span<const std::int64_t> cohort) {
  for (const auto client : cohort) {
    auto order = visiting_order(what_, number, client);
    {
      const at::NoGradGuard no_gradients;
      for (std::size_t i = 0; i < start_.size(); ++i)
        weights_[i].copy_(start_[i]);
    }
    train(at::from_blob(order.data(), {what_.rows}, at::kLong));
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
  for (std::int64_t first = 0; first < what_.rows; first += what_.batch) {
    const auto batch = rows.narrow(0, first, what_.batch);
    const auto logits = forward(all_.images.index_select(0, batch), weights_); // [B, classes]
    at::cross_entropy_loss(logits, all_.labels.index_select(0, batch)).backward();
    const at::NoGradGuard no_gradients;
    for (auto& one : weights_) {
      one.sub_(one.grad(), what_.learning_rate);
      one.mutable_grad().reset();
    }
  }
}

double bare_loop::weights_norm() const { return norm_of(start_); }

} // namespace mneme::bench
