#include "strategies/shared/averaging.hpp"
#include "runtime/base/check.hpp"
#include "runtime/base/non_owning.hpp"
#include "runtime/kernels/fold.hpp"
#include <ATen/ATen.h>
#include <algorithm>
#include <fmt/format.h>
#include <utility>
namespace mneme {

// -- sums of uploads --------------------------------------------------------------------------------------------------

namespace {

/// Allocates the sum (float64) if it is undefined. Moves a sum on the host to the device of `value`, because uploads of
/// one run can come from nodes with and without a device.
void make_room(at::Tensor& sum, const at::Tensor& value) {
  if (!sum.defined())
    sum = at::zeros_like(value, value.options().dtype(at::kDouble));
  else if (sum.is_cpu() && !value.is_cpu())
    sum = sum.to(value.device());
}

/// Adds the waiting uploads to the sum in their order, and clears the list.
void fold(at::Tensor& sum, std::vector<weighted_upload>& waiting) {
  if (!sum.is_cpu())
    for (auto& upload : waiting)
      upload.values = upload.values.to(sum.device());
  fold_uploads(sum, waiting);
  waiting.clear();
}

} // namespace

void weighted_average::add(const at::Tensor& value, double weight) {
  check_upload(value, weight, sum_);
  make_room(sum_, value);
  waiting_.push_back({.values = value, .weight = weight});
  weight_ += weight;
  if (waiting_.size() == kernels::folded_at_once_max)
    fold_pending();
}

void weighted_average::fold_pending() {
  if (!waiting_.empty())
    fold(sum_, waiting_);
}

at::Tensor weighted_average::take() {
  MNEME_CHECK(!empty());
  fold_pending();
  return take_mean(sum_, std::exchange(weight_, 0.0));
}

void weighted_average::persist(archive& state) {
  fold_pending();
  auto sum = empty() ? at::Tensor() : sum_; // a sum without uploads contains only zeros, so it is not saved
  state(sum)(weight_);
  const bool holds =
      sum.defined() ? weight_ > 0.0 && sum.scalar_type() == at::kDouble && sum.dim() == 1 : weight_ == 0.0;
  if (state.loading() && !holds)
    throw archive_error("has a sum without uploads, or uploads without a sum");
  sum_ = sum;
}

namespace {

constexpr std::size_t starts_held_max = 16; // largest number of start models in memory before they are summed

} // namespace

void weighted_change::add(const at::Tensor& value, const at::Tensor& start, double weight) {
  check_upload(value, weight, sum_);
  check_upload(start, weight, value);
  make_room(sum_, value);
  empty_ = false;
  waiting_.push_back({.values = value, .weight = weight});
  const auto known = std::find_if(starts_.begin(), starts_.end(), [&](const weighted_upload& known_start) {
    return known_start.values.is_same(start);
  });
  if (known != starts_.end())
    known->weight -= weight;
  else
    starts_.push_back({.values = start, .weight = -weight});
  if (waiting_.size() == kernels::folded_at_once_max)
    fold_pending();
  if (starts_.size() > starts_held_max)
    fold_starts();
}

void weighted_change::fold_pending() { fold(sum_, waiting_); }

void weighted_change::fold_starts() { fold(sum_, starts_); }

/// Waiting uploads are saved unsummed. Summing them earlier, or with other starts, would change the last bits.
void weighted_change::persist(archive& state) {
  state(sum_);
  for (auto* held : {&waiting_, &starts_}) {
    std::uint64_t count = held->size();
    state(count);
    if (state.loading())
      held->clear();
    for (std::uint64_t i = 0; i < count; ++i) {
      auto& upload = state.loading() ? held->emplace_back() : (*held)[i];
      state.frozen(upload.values)(upload.weight);
    }
  }
}

at::Tensor weighted_change::take(const at::Tensor& base, double scale) {
  MNEME_CHECK(!empty());
  fold_pending();
  fold_starts();
  empty_ = true;
  return take_moved(sum_, base, scale);
}

// -- which tensors are sent -------------------------------------------------------------------------------------------

transmitted_weights::transmitted_weights(model_ref net, trainable_part part) {
  const auto trained = trained_parameters(*net, part);
  for (std::size_t i = 0; i < net->layout().size(); ++i)
    if (trained.changes(*net, i))
      trained_.push_back(net->layout()[i]);
  if (trained_.size() == net->layout().size())
    trained_.clear();
}

tensors_ref transmitted_weights::pick(const at::Tensor& flat) const {
  if (whole())
    return weights_only(flat);
  auto picked = std::make_shared<tensor_map>();
  for (const auto& tensor : trained_)
    picked->put(tensor.name, flat.narrow(0, tensor.offset, tensor.size));
  return picked;
}

std::int64_t transmitted_weights::parameters(const model& net) const {
  std::int64_t count = 0;
  for (const auto& tensor : whole() ? net.layout() : trained_)
    count += tensor.buffer ? 0 : tensor.size;
  return count;
}

at::Tensor transmitted_weights::complete(const at::Tensor& base, const tensor_map& traveled) const {
  if (whole())
    return traveled.at(flat_weights);
  auto flat = base.clone();
  for (const auto& tensor : trained_)
    flat.narrow(0, tensor.offset, tensor.size).copy_(traveled.at(tensor.name));
  return flat;
}

// -- server half ------------------------------------------------------------------------------------------------------

averaging_server::averaging_server(const method_setup& setup)
    : net_(setup.net), weighting_(setup.weighting), old_model_share_(setup.old_model_share), rounds_(setup.rounds),
      transmitted_(setup.net, setup.trainable), weights_(setup.initial->at(flat_weights)) {
  if (!transmitted_.whole())
    frozen_ = weights_only(weights_);
}

broadcast averaging_server::open_round(const round_info&) {
  return {.info = {}, .weights = transmitted_.pick(weights_), .extra = nullptr, .initial_payload = frozen_};
}

double averaging_server::weight_of(const delivery& in) const {
  return weighting_ == upload_weighting::samples ? static_cast<double>(in.rows) : 1.0;
}

void averaging_server::fold(const delivery& in) {
  const double weight = weight_of(in);
  if (weight == 0.0) // a client without rows has not trained
    return;
  if (rounds_.mode == round_mode::sync)
    for (const auto& [name, value] : *in.upload)
      sums_[name].add(value, weight);
  else if (rounds_.aggregation == aggregation_kind::fedasync)
    mix_in(in);
  else
    fold_change(in, weight);
}

/// FedAsync (Xie et al. 2019, Algorithm 1): w = (1 - a) w + a w_k, where a = rounds.mixing * s_k (staleness weight).
void averaging_server::mix_in(const delivery& in) {
  const double share = rounds_.mixing * in.staleness_weight;
  if (share == 0.0)
    return;
  const auto present = transmitted_.pick(weights_);
  for (const auto& [name, value] : *present) { // other tensors of the upload belong to the method
    auto& sum = sums_[name];
    if (share < 1.0)
      sum.add(value, 1.0 - share);
    sum.add(in.upload->at(name), share);
  }
}

/// FedBuff (Nguyen et al. 2022, Algorithm 1) with client weights c_k: adds c_k s_k (w_k - start_k) to the buffer.
void averaging_server::fold_change(const delivery& in, double weight) {
  MNEME_CHECK(in.start != nullptr, in.from.value);
  change_weight_ += weight;
  const double scaled = weight * in.staleness_weight;
  if (scaled == 0.0)
    return;
  for (const auto& [name, start] : *in.start)
    changes_[name].add(in.upload->at(name), start, scaled);
}

/// w = s w_old + (1 - s) sum_k n_k w_k / sum_k n_k, where s is old_model_share_. With s = 0 this is McMahan et al.
/// 2017, Algorithm 1. Sums are computed in float64 and in delivery order. OSI-FL's federated baselines use s > 0, which
/// also applies to running statistics.
tensor_map averaging_server::take_means() {
  tensor_map means;
  const auto present = old_model_share_ > 0.0 ? transmitted_.pick(weights_) : nullptr;
  for (auto& [name, sum] : sums_) {
    if (sum.empty())
      continue;
    auto mean = sum.take();
    const auto* const old = present ? present->find(name) : nullptr; // null for tensors that belong to the method
    means.put(name, old ? mean.mul_(1.0 - old_model_share_).add_(old->to(mean.device()), old_model_share_) : mean);
  }
  return means;
}

/// w += eta sum_k c_k s_k d_k / sum_k c_k, with d_k = w_k - start_k.
tensor_map averaging_server::take_changes() {
  tensor_map moved;
  const auto scale = rounds_.server_learning_rate / std::exchange(change_weight_, 0.0);
  const auto present = transmitted_.pick(weights_);
  for (auto& [name, change] : changes_)
    if (!change.empty())
      moved.put(name, change.take(present->at(name), scale));
  return moved;
}

task<void> averaging_server::close_round(server_context&, const round_info&) {
  average();
  co_return;
}

void averaging_server::average() {
  const bool buffered = rounds_.mode == round_mode::async && rounds_.aggregation == aggregation_kind::fedbuff;
  const auto learned = buffered ? take_changes() : take_means();
  if (!learned.empty())
    weights_ = transmitted_.complete(weights_, learned);
}

predictor averaging_server::predict() const { return {.net = net_, .weights = weights_only(weights_)}; }

std::map<std::string, double> averaging_server::summary_metrics() const {
  if (rounds_.mode != round_mode::sync)
    return {};
  return {{"paper_params", static_cast<double>(rounds_.per_task * transmitted_.parameters(*net_))}};
}

// -- client half ------------------------------------------------------------------------------------------------------

train_job local_training(const method_setup& setup, const client_context& ctx, const broadcast& in, local_data over) {
  return {.net = setup.net,
          .start = in.weights,
          .samples = std::move(over.samples),
          .objective = cross_entropy_objective(),
          .auxiliary = nullptr,
          .options = options_for_round(setup.training, setup.trainable, over.classes, in.info.round_of_task,
                                       in.info.rounds_of_task),
          .stream = ctx.training_stream()};
}

diagnostics averaging_method::check(const method_setup& setup) const {
  if (setup.net->classes() > 0)
    return {};
  return {{"model.name", fmt::format("'{}' has no head, so there is nothing to train and to average; every other model "
                                     "has one",
                                     setup.net->identity())}};
}

void averaging_method::prepare(const method_setup& setup) {
  setup_ = setup;
  transmitted_ = transmitted_weights(setup.net, setup.trainable);
  objective_ = objective();
}

task<client_result> averaging_method::client_round(client_context& ctx, const broadcast& in) const {
  auto job = local_training(setup_, ctx, in, {.samples = ctx.samples(), .classes = covered_classes(in.info)});
  job.start = full_weights(in.weights, in);
  job.objective = non_owning(objective_);
  adjust(job, in);
  auto training = ctx.train(std::move(job));
  auto trained = co_await training;

  const auto upload = transmitted_.whole() ? trained.weights : transmitted_.pick(trained.weights->at(flat_weights));
  co_return client_result{.upload = upload, .memory = nullptr, .rows = trained.rows_seen};
}

tensors_ref averaging_method::full_weights(const tensors_ref& traveled, const broadcast& in) const {
  if (transmitted_.whole())
    return traveled;
  return weights_only(transmitted_.complete(in.initial_payload->at(flat_weights), *traveled));
}

std::unique_ptr<server_half> averaging_method::make_server() const {
  return std::make_unique<averaging_server>(setup_);
}

} // namespace mneme
