// What a group leaves: losses, weights or gradients, and why there are none.
#include "runtime/kernels/elementwise.hpp"
#include "runtime/training/fused_training.hpp"
#include <ATen/ATen.h>
#include <algorithm>
#include <cmath>
namespace mneme {
namespace {

/// matrix[k], which shares its memory. One such view leaves for every client, so it is made without the dispatcher.
at::Tensor row_of(const at::Tensor& matrix, std::int64_t k) {
  auto row = at::detail::make_tensor<c10::TensorImpl>(c10::TensorImpl::VIEW, c10::Storage(matrix.storage()),
                                                      matrix.key_set(), matrix.dtype());
  row.unsafeGetTensorImpl()->set_storage_offset(matrix.storage_offset() + k * matrix.stride(0));
  row.unsafeGetTensorImpl()->set_sizes_contiguous(matrix.sizes().slice(1));
  return row;
}

bool is_finite(const at::Tensor& values) {
  if (!values.is_cpu() || values.scalar_type() != at::kFloat)
    return at::isfinite(values).all().item<bool>();
  bool finite = true;
  kernels::check_finite(finite, values.const_data_ptr<float>(), values.numel());
  return finite;
}

} // namespace

/// Sums up the losses of the last epoch; on a device, there: the host does not wait for it at every step.
void fused_training::note_losses(model_run run, const loss_output& step) {
  const auto add_term = [&](const char* name, const at::Tensor& values) {
    auto& sums = sums_of(name);
    std::fill_n(sums.is_of.begin() + run.first, run.count, true);
    if (!values.is_cpu()) {
      sums.values.narrow(0, run.first, run.count).add_(values);
      return;
    }
    auto* const to = sums.values.mutable_data_ptr<double>() + run.first;
    for (std::int64_t i = 0; i < run.count; ++i)
      to[i] += values.const_data_ptr<double>()[i];
  };
  if (step.terms.empty())
    add_term(loss_->main_term(), step.values);
  for (const auto& [name, values] : step.terms)
    add_term(name, values);
  if (!step.values.is_cpu()) {
    if (!losses_.defined())
      losses_ = at::zeros({std::ssize(clients_)}, step.values.options());
    losses_.narrow(0, run.first, run.count).add_(step.values);
    return;
  }
  const auto* const values = step.values.const_data_ptr<double>();
  for (std::int64_t i = 0; i < run.count; ++i)
    clients_[static_cast<std::size_t>(run.first + i)].loss_sum += values[i];
}

/// The same of the first epoch, without terms and penalties.
void fused_training::note_first_losses(model_run run, const at::Tensor& values) {
  if (!values.is_cpu()) {
    if (!first_losses_.defined())
      first_losses_ = at::zeros({std::ssize(clients_)}, values.options());
    first_losses_.narrow(0, run.first, run.count).add_(values);
    return;
  }
  for (std::int64_t i = 0; i < run.count; ++i)
    clients_[static_cast<std::size_t>(run.first + i)].first_loss += values.const_data_ptr<double>()[i];
}

/// Adds the step's features to the sums of their classes, model by model: products with one-hot rows, whose order of
/// sums does not depend on a device's threads.
void fused_training::note_features(model_run run, const at::Tensor& features) {
  const auto classes = options_.classes.size(), width = features.size(2);
  if (!feature_sums_.defined()) {
    const auto options = features.options().dtype(at::kDouble);
    feature_sums_ = at::zeros({std::ssize(clients_), classes, width}, options);
    feature_rows_ = at::zeros({std::ssize(clients_), classes}, options);
  }
  const auto& labels = buffers_.labels; // [K, B], -1 where padded
  for (std::int64_t k = 0; k < run.count; ++k) {
    const auto of_class = labels[k].unsqueeze(0).eq(at::arange(classes, labels.options()).unsqueeze(1)).to(at::kDouble);
    feature_sums_[run.first + k].add_(at::matmul(of_class, features[k].detach().to(at::kDouble)));
    feature_rows_[run.first + k].add_(of_class.sum(1));
  }
}

/// Counts rows that the net takes for their class; no label of a padded row is one.
void fused_training::note_right_answers(model_run run, const at::Tensor& logits) {
  right_.narrow(0, run.first, run.count).add_(logits.detach().argmax(2).eq(buffers_.labels).sum(1));
}

/// At the end of an epoch: its weights, client by client, where more rows were right than in any before.
void fused_training::keep_best_epoch() {
  const auto better = right_.gt(best_right_);
  best_weights_ = at::where(better.unsqueeze(1), weights_, best_weights_);
  best_right_ = at::maximum(best_right_, right_);
  right_.zero_();
}

void fused_training::note_penalty(std::int64_t k, const loss_term& penalty) {
  auto& sums = sums_of(penalty.name);
  sums.is_of[static_cast<std::size_t>(k)] = true;
  if (!penalty.value.is_cpu()) {
    sums.values.select(0, k).add_(penalty.value);
    losses_.select(0, k).add_(penalty.value);
    return;
  }
  const auto value = *penalty.value.const_data_ptr<double>();
  sums.values.mutable_data_ptr<double>()[k] += value;
  clients_[static_cast<std::size_t>(k)].loss_sum += value;
}

/// Zeros where the term is a new one.
fused_training::term_sums& fused_training::sums_of(const char* name) {
  const auto known =
      std::find_if(terms_.begin(), terms_.end(), [&](const term_sums& term) { return term.name == name; });
  if (known != terms_.end())
    return *known;
  const auto options = at::TensorOptions(at::kDouble).device(images_.device());
  return terms_.emplace_back(term_sums{
      .name = name, .values = at::zeros({std::ssize(clients_)}, options), .is_of = std::vector<bool>(clients_.size())});
}

/// The terms of a client's loss, means over its steps. A net that is trained client by client has one.
void fused_training::name_terms(const client& trained, std::int64_t k, train_output& out) const {
  out.loss_name = loss_->main_term();
  if (terms_.empty() || (terms_.size() == 1 && terms_[0].name == out.loss_name))
    return;
  const auto steps = static_cast<double>(trained.plan.steps());
  std::map<std::string, double> means;
  for (const auto& term : terms_)
    if (term.is_of[static_cast<std::size_t>(k)])
      means[term.name] = term.values.const_data_ptr<double>()[k] / steps;
  out.several_terms = std::make_shared<const std::map<std::string, double>>(std::move(means));
}

/// Zeros for what steps add to: [K, P], [K, n] of row norms, or [K] of right answers, with the start beside them.
void fused_training::take_result_memory() {
  const auto models = std::ssize(clients_);
  if (options_.best_epoch) {
    best_weights_ = weights_.clone();
    right_ = at::zeros({models}, weights_.options().dtype(at::kLong));
    best_right_ = at::zeros_like(right_);
  }
  if (options_.result == training_result::row_norms)
    result_ = at::zeros({models, clients_[0].plan.rows}, weights_.options().dtype(at::kDouble));
  else if (options_.result != training_result::weights)
    result_ = at::zeros({models, net_.size()}, weights_.options());
}

/// Adds what the step's gradients are wanted for.
void fused_training::note_gradients(model_run run, std::int64_t s) {
  for (auto k = run.first; k < run.first + run.count; ++k) {
    const auto& client = clients_[static_cast<std::size_t>(k)];
    const auto gradient = gradients_.select(0, k), result = result_.select(0, k);
    if (options_.result == training_result::row_norms) {
      result[client.order[static_cast<std::size_t>(s)]].copy_(norm_of(gradient));
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

/// Over all that is trained: a float64 of its device.
at::Tensor fused_training::norm_of(const at::Tensor& gradient) const {
  if (!gradient.is_cpu()) {
    auto squares = at::zeros({}, gradient.options().dtype(at::kDouble));
    for (const auto& piece : trained_)
      squares += gradient.narrow(0, piece.offset, piece.size).square().sum(at::kDouble);
    return squares.sqrt_();
  }
  double squares = 0.0;
  for (const auto& piece : trained_)
    kernels::add_squares(squares, gradient.const_data_ptr<float>() + piece.offset, piece.size);
  return at::scalar_tensor(std::sqrt(squares), at::kDouble);
}

/// Copies what the host needs of a training on a device: the losses, and which weights are finite.
void fused_training::copy_to_host() {
  if (images_.device().is_cpu() || !losses_.defined())
    return;
  for (auto& term : terms_)
    term.values = term.values.cpu();
  if (first_losses_.defined())
    first_losses_ = first_losses_.cpu();
  const auto sums = losses_.cpu(), finite = at::isfinite(result_.defined() ? result_ : weights_).all(1).cpu();
  for (std::size_t k = 0; k < clients_.size(); ++k) {
    clients_[k].loss_sum = sums.const_data_ptr<double>()[k];
    if (first_losses_.defined())
      clients_[k].first_loss = first_losses_.const_data_ptr<double>()[k];
    clients_[k].finite = finite.const_data_ptr<bool>()[k];
  }
}

job_outcome fused_training::outcome_of(const client& trained, std::int64_t k) const {
  train_output out{.rows_seen = trained.job->samples.size()};
  const bool idle = trained.plan.steps() == 0;
  const auto& start = trained.job->start->at(flat_weights);
  if (!idle) {
    out.loss_mean = trained.loss_sum / static_cast<double>(trained.plan.steps());
    out.first_loss = trained.first_loss;
    if (feature_sums_.defined()) {
      out.feature_sums = feature_sums_[k].cpu().clone();
      out.feature_rows = feature_rows_[k].cpu().clone();
    }
    name_terms(trained, k, out);
  }
  at::Tensor result;
  if (options_.result == training_result::weights) {
    if (idle) { // nothing moved: what it began with, without a copy
      out.weights = trained.job->start->size() == 1 ? trained.job->start : weights_only(start);
      return work_output{std::move(out)};
    }
    result = row_of(best_weights_.defined() ? best_weights_ : weights_, k);
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

/// What diverged, in words: the first parameter that holds a value which is no number.
std::string fused_training::failure_of(const client& trained, const at::Tensor& result) const {
  std::string where = "the loss is";
  for (const auto& parameter : net_.layout())
    if (result.numel() == net_.size() && !is_finite(result.narrow(0, parameter.offset, parameter.size))) {
      where = parameter.name + " holds values that are";
      break;
    }
  if (options_.result != training_result::weights)
    return "there are no gradients: " + where + " NaN or infinite; the weights that they are taken at, or the " +
           std::to_string(trained.plan.rows) + " rows, hold such values";
  return "training diverged: after " + std::to_string(options_.epochs * trained.plan.steps()) + " steps on " +
         std::to_string(trained.plan.rows) + " rows " + where +
         " NaN or infinite; a smaller training.learning_rate (now " + values_text(options_.learning_rate) +
         ") or a training.clip_norm may help";
}

} // namespace mneme
