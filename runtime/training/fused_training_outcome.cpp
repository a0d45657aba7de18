// Outcomes of a group: losses, and weights or gradients, or an error message.
#include "runtime/kernels/elementwise.hpp"
#include "runtime/method/finite_values.hpp"
#include "runtime/training/fused_training.hpp"
#include <ATen/ATen.h>
#include <algorithm>
#include <cmath>
namespace mneme {
namespace {

/// Returns matrix[k] as a view. Bypasses the dispatcher to save time, because each client's outcome has such a view.
at::Tensor row_of(const at::Tensor& matrix, std::int64_t k) {
  auto row = at::detail::make_tensor<c10::TensorImpl>(c10::TensorImpl::VIEW, c10::Storage(matrix.storage()),
                                                      matrix.key_set(), matrix.dtype());
  row.unsafeGetTensorImpl()->set_storage_offset(matrix.storage_offset() + k * matrix.stride(0));
  row.unsafeGetTensorImpl()->set_sizes_contiguous(matrix.sizes().slice(1));
  return row;
}

tensor_map on_host(const tensor_map& values) {
  tensor_map copies;
  for (const auto& [name, value] : values)
    copies.put(name, value.cpu());
  return copies;
}

/// Norm of a gradient [P] over the trained segments, a float64 scalar on the gradient's device.
at::Tensor norm_of(const at::Tensor& gradient, const std::vector<segment>& trained) {
  if (!gradient.is_cpu()) {
    auto squares = at::zeros({}, gradient.options().dtype(at::kDouble));
    for (const auto& piece : trained)
      squares += gradient.narrow(0, piece.offset, piece.size).square().sum(at::kDouble);
    return squares.sqrt_();
  }
  double squares = 0.0;
  for (const auto& piece : trained)
    kernels::add_squares(squares, gradient.const_data_ptr<float>() + piece.offset, piece.size);
  return at::scalar_tensor(std::sqrt(squares), at::kDouble);
}

} // namespace

/// Allocates zeros for the sums of gradients, [K, P], or for row norms, [K, n].
void fused_training::take_result_memory() {
  const auto models = std::ssize(clients_);
  if (options_.result == training_result::row_norms)
    result_ = at::zeros({models, clients_[0].plan.rows}, weights_.options().dtype(at::kDouble));
  else if (options_.result != training_result::weights)
    result_ = at::zeros({models, net_.size()}, weights_.options());
}

/// Adds the step's gradients to the result, as a mean, as squares or as the norm of the row's gradient.
void fused_training::record_gradients(model_run run, std::int64_t s) {
  for (auto k = run.first; k < run.first + run.count; ++k) {
    const auto& client = clients_[static_cast<std::size_t>(k)];
    const auto gradient = gradients_.select(0, k), result = result_.select(0, k);
    if (options_.result == training_result::row_norms) {
      result[client.order[static_cast<std::size_t>(s)]].copy_(norm_of(gradient, trained_));
      continue;
    }
    const auto share = static_cast<double>(client.plan.rows_of(s)) / static_cast<double>(client.plan.rows);
    for (const auto& piece : trained_) {
      const auto own = gradient.narrow(0, piece.offset, piece.size);
      auto sum = result.narrow(0, piece.offset, piece.size);
      if (options_.result == training_result::gradient)
        sum.add_(own, share);
      else
        sum.addcmul_(own, own);
    }
  }
}

/// Copies the losses of a training on a device to the host, and, for each client, whether its weights are finite.
void fused_training::copy_to_host() {
  if (images_.device().is_cpu() || !losses_.are_on_device())
    return;
  losses_.copy_to_host();
  const auto finite = at::isfinite(result_.defined() ? result_ : weights_).all(1).cpu();
  for (std::size_t k = 0; k < clients_.size(); ++k)
    clients_[k].finite = finite.const_data_ptr<bool>()[k];
}

job_outcome fused_training::outcome_of(const client& trained, std::int64_t k) const {
  train_output out{.rows_seen = trained.job->samples.size()};
  const bool idle = trained.plan.steps() == 0;
  const auto& start = trained.job->start->at(flat_weights);
  if (!idle) {
    const auto place = static_cast<std::size_t>(k);
    out.loss_mean = losses_.last_epoch(place) / static_cast<double>(trained.plan.steps());
    if (trained.observer)
      out.observed = std::make_shared<const tensor_map>(on_host(trained.observer->result()));
    out.loss_name = loss_->main_term();
    out.several_terms = losses_.term_means(place, trained.plan.steps());
  }
  at::Tensor result;
  if (options_.result == training_result::weights) {
    if (idle) { // the start weights are shared, not copied
      out.weights = trained.job->start->size() == 1 ? trained.job->start : weights_only(start);
      return work_output{std::move(out)};
    }
    result = row_of(weights_, k);
    out.weights = weights_only(result);
  } else if (options_.result == training_result::row_norms) {
    result = idle ? at::zeros({trained.job->samples.size()}, at::kDouble)
                  : result_.select(0, k).narrow(0, 0, trained.plan.rows).cpu();
    out.row_norms = result;
  } else {
    const bool squares = options_.result == training_result::squared_gradients;
    result = idle ? at::zeros_like(start) : row_of(result_, k);
    if (squares && !idle)
      result = result / static_cast<double>(trained.plan.steps());
    out.gradients = result;
  }
  if (!idle && (!std::isfinite(out.loss_mean) || !trained.finite || (result.is_cpu() && !is_finite(result))))
    return failure_of(trained, result);
  return work_output{std::move(out)};
}

/// Error message that names the first parameter that is not finite, or else the loss.
std::string fused_training::failure_of(const client& trained, const at::Tensor& result) const {
  const auto name = result.numel() == net_.size() ? non_finite_parameter(result, net_) : std::string{};
  const auto where = name.empty() ? std::string("the loss is") : name + " holds values that are";
  if (options_.result != training_result::weights)
    return "there are no gradients: " + where + " NaN or infinite; the weights that they are taken at, or the " +
           std::to_string(trained.plan.rows) + " rows, hold such values";
  return "training diverged: after " + std::to_string(options_.epochs * trained.plan.steps()) + " steps on " +
         std::to_string(trained.plan.rows) + " rows " + where +
         " NaN or infinite; a smaller training.learning_rate (now " + values_text(options_.learning_rate) +
         ") or a training.clip_norm may help";
}

} // namespace mneme
