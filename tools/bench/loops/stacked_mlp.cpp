// stacked_mlp: K clients at once, each layer one batched product over K: what a person writes by hand who has noticed
// that small nets spend their time between operators. Once with autograd, once with gradients by hand.
#include "tools/bench/loops/contender.hpp"
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <cmath>
namespace mneme::bench {
namespace {

/// The loop over groups of K clients; whoever inherits trains a group.
class stacked_loop : public contender {
public:
  explicit stacked_loop(const workload& what) : what_(what), all_(made_population(what)) {
    for (const auto& one : first_mlp_weights(what)) { // [out, in], or [out]
      start_.push_back(one.dim() == 2 ? one.t().contiguous() : one.unsqueeze(0));
      weights_.push_back(start_.back().unsqueeze(0).repeat({what.width, 1, 1}));
      sum_.push_back(at::zeros_like(start_.back()));
    }
  }

  void round(std::int64_t number, std::span<const std::int64_t> cohort) final {
    for (std::size_t first = 0; first < cohort.size(); first += static_cast<std::size_t>(what_.width)) {
      const auto rows = group_rows(number, cohort.subspan(first, static_cast<std::size_t>(what_.width)));
      {
        const at::NoGradGuard no_gradients;
        for (std::size_t i = 0; i < start_.size(); ++i)
          weights_[i].copy_(start_[i]); // [in, out] to [K, in, out]
      }
      for (std::int64_t step = 0; step < what_.steps(); ++step) {
        const auto batch = rows[step]; // [K * B]
        take_step(all_.images.index_select(0, batch).view({what_.width, what_.batch, -1}),
                  all_.labels.index_select(0, batch));
      }
      const at::NoGradGuard no_gradients;
      for (std::size_t i = 0; i < sum_.size(); ++i)
        sum_[i].add_(weights_[i].sum(0));
    }
    for (std::size_t i = 0; i < sum_.size(); ++i) {
      start_[i].copy_(sum_[i]).div_(static_cast<double>(cohort.size()));
      sum_[i].zero_();
    }
  }

  [[nodiscard]] double weights_norm() const final {
    double squares = 0.0;
    for (const auto& one : start_)
      squares += std::pow(one.norm().item<double>(), 2);
    return std::sqrt(squares);
  }

protected:
  /// x: [K, B, F], labels: [K * B]
  virtual void take_step(const at::Tensor& x, const at::Tensor& labels) = 0;

  workload what_;
  std::vector<at::Tensor> weights_; // [K, F, H], [K, 1, H], [K, H, classes], [K, 1, classes]

private:
  /// [steps, K * B] int64: the rows that step s needs, client after client.
  [[nodiscard]] at::Tensor group_rows(std::int64_t number, std::span<const std::int64_t> group) const {
    auto rows = at::empty({what_.steps(), what_.width, what_.batch}, at::kLong);
    auto* out = rows.mutable_data_ptr<std::int64_t>();
    for (std::int64_t k = 0; k < what_.width; ++k) {
      const auto order = visiting_order(what_, number, group[static_cast<std::size_t>(k)]);
      for (std::int64_t i = 0; i < what_.rows; ++i)
        out[((i / what_.batch) * what_.width + k) * what_.batch + i % what_.batch] = order[static_cast<std::size_t>(i)];
    }
    return rows.view({what_.steps(), -1});
  }

  population all_;
  std::vector<at::Tensor> start_, sum_; // as weights_, without K
};

class stacked_with_autograd final : public stacked_loop {
public:
  explicit stacked_with_autograd(const workload& what) : stacked_loop(what) {
    for (auto& one : weights_)
      one.requires_grad_(true);
  }

private:
  void take_step(const at::Tensor& x, const at::Tensor& labels) override {
    const auto hidden = at::relu(at::baddbmm(weights_[1], x, weights_[0])); // [K, B, H]
    const auto logits = at::baddbmm(weights_[3], hidden, weights_[2]);      // [K, B, classes]
    const auto losses = at::cross_entropy_loss(logits.flatten(0, 1), labels, {}, at::Reduction::Sum);
    losses.backward();
    const at::NoGradGuard no_gradients;
    for (auto& one : weights_) { // each model's loss is the mean over its own rows
      one.sub_(one.grad(), what_.learning_rate / static_cast<double>(what_.batch));
      one.mutable_grad().reset();
    }
  }
};

class stacked_by_hand final : public stacked_loop {
public:
  explicit stacked_by_hand(const workload& what)
      : stacked_loop(what), one_hot_(at::eye(what.classes, at::kFloat)),
        rate_(what.learning_rate / static_cast<double>(what.batch)) {}

private:
  void take_step(const at::Tensor& x, const at::Tensor& labels) override {
    const auto hidden = at::baddbmm(weights_[1], x, weights_[0]).relu_();       // [K, B, H]
    auto error = at::softmax(at::baddbmm(weights_[3], hidden, weights_[2]), 2); // [K, B, classes]
    error.sub_(one_hot_.index_select(0, labels).view_as(error));
    const auto inner = at::threshold_backward(at::bmm(error, weights_[2].transpose(1, 2)), hidden, 0); // [K, B, H]
    // A gradient is needed for nothing but the step, so the step is part of the product.
    weights_[2].baddbmm_(hidden.transpose(1, 2), error, 1, -rate_);
    weights_[3].sub_(error.sum(1, true), rate_);
    weights_[0].baddbmm_(x.transpose(1, 2), inner, 1, -rate_);
    weights_[1].sub_(inner.sum(1, true), rate_);
  }

  at::Tensor one_hot_; // [classes, classes]
  double rate_;
};

} // namespace

std::unique_ptr<contender> stacked_mlp_autograd(const workload& what) {
  return std::make_unique<stacked_with_autograd>(what);
}
std::unique_ptr<contender> stacked_mlp_by_hand(const workload& what) { return std::make_unique<stacked_by_hand>(what); }

} // namespace mneme::bench
