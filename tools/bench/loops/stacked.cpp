#include "tools/bench/loops/stacked.hpp"
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/zeros_like.h>
namespace mneme::bench {

stacked_loop::stacked_loop(const workload& load, std::vector<at::Tensor> start)
    : workload_(load), population_(make_population(load)), start_(std::move(start)) {
  for (const auto& tensor : start_) {
    auto shape = tensor.sizes().vec();
    shape.insert(shape.begin(), load.width);
    weights_.push_back(at::empty(shape, at::kFloat));
    sum_.push_back(at::zeros_like(tensor));
  }
}

void stacked_loop::round(std::int64_t number, std::span<const std::int64_t> cohort) {
  const auto width = static_cast<std::size_t>(workload_.width);
  for (std::size_t first = 0; first < cohort.size(); first += width) {
    train(number, cohort.subspan(first, width));
    const at::NoGradGuard no_gradients;
    for (std::size_t i = 0; i < sum_.size(); ++i)
      sum_[i].add_(weights_[i].sum(0));
  }
  for (std::size_t i = 0; i < sum_.size(); ++i) {
    start_[i].copy_(sum_[i]).div_(static_cast<double>(cohort.size()));
    sum_[i].zero_();
  }
}

void stacked_loop::train(std::int64_t number, std::span<const std::int64_t> group) {
  {
    const at::NoGradGuard no_gradients;
    for (std::size_t i = 0; i < start_.size(); ++i)
      weights_[i].copy_(start_[i]); // broadcast over axis K
  }
  const auto rows = group_rows(number, group); // [steps, K * B]
  for (std::int64_t step = 0; step < workload_.steps(); ++step)
    take_step(population_.images.index_select(0, rows[step]).view({workload_.width, workload_.batch, -1}),
              population_.labels.index_select(0, rows[step]));
}

/// Rows of each step, client by client: [steps, K * B] int64.
at::Tensor stacked_loop::group_rows(std::int64_t number, std::span<const std::int64_t> group) const {
  const auto steps = workload_.steps(), width = workload_.width, batch = workload_.batch;
  auto rows = at::empty({steps, width * batch}, at::kLong);
  auto* out = rows.mutable_data_ptr<std::int64_t>();
  for (std::int64_t k = 0; k < width; ++k) {
    const auto order = visiting_order(workload_, number, group[static_cast<std::size_t>(k)]);
    for (std::int64_t i = 0; i < workload_.rows; ++i)
      out[((i / batch) * width + k) * batch + i % batch] = order[static_cast<std::size_t>(i)];
  }
  return rows;
}

void stacked_loop::step_by_autograd(const at::Tensor& logits, const at::Tensor& labels) {
  at::cross_entropy_loss(logits.flatten(0, 1), labels, {}, at::Reduction::Sum).backward();
  const at::NoGradGuard no_gradients;
  for (auto& tensor : weights_) {
    tensor.sub_(tensor.grad(), workload_.learning_rate / static_cast<double>(workload_.batch));
    tensor.mutable_grad().reset();
  }
}

double stacked_loop::weights_norm() const { return norm_of(start_); }

} // namespace mneme::bench
