#include "runtime/training/fused_training.hpp"
#include "runtime/base/ceil_div.hpp"
#include "runtime/base/tuning.hpp"
#include "runtime/kernels/elementwise.hpp"
#include "runtime/method/second_view.hpp"
#include "runtime/models/layer.hpp"
#include "runtime/training/frozen_outputs.hpp"
#include "runtime/training/job_validation.hpp"
#include <ATen/ATen.h>
#include <algorithm>
#include <cmath>
#include <tuple>
namespace mneme {
namespace {

constexpr std::int64_t cache_line_floats = 16; // each model's weights begin at a cache line

const train_job& training_of(const job& queued) { return std::get<train_job>(queued.request); }

/// Options of the steps. Norms of the rows' gradients require steps of one row each, in evaluation mode. The loss of a
/// net that predicts tokens covers all tokens.
training_options in_steps(training_options options, const model& net) {
  if (positions_of(net) > 1)
    options.classes = {0, net.classes()};
  if (options.result != training_result::row_norms)
    return options;
  options.batch_rows = 1;
  options.evaluation = true;
  return options;
}

/// Classes whose head rows are trained.
class_range trained_classes(const training_options& options) {
  if (options.trained_classes.size() > 0)
    return options.trained_classes;
  return {std::max(options.classes.low, options.held_classes), options.classes.high};
}

loss_ref objective_of(const train_job& request) {
  return request.objective ? request.objective : cross_entropy_objective();
}

/// Padded rows of the last step; 0 without steps.
std::int64_t last_padded_rows(const step_plan& plan) {
  return plan.steps() == 0 ? 0 : plan.padded_rows_of(plan.steps() - 1);
}

} // namespace

fused_training::fused_training(std::span<const job> batch, image_store& images, training_buffers& buffers)
    : options_(in_steps(training_of(batch[0]).options, *training_of(batch[0]).net)), net_(*training_of(batch[0]).net),
      loss_(objective_of(training_of(batch[0]))), images_(images), buffers_(buffers), has_soft_targets_(false),
      positions_(positions_of(net_)),
      choice_(trained_parameters(net_, options_.trained, options_.layers, options_.update_running_stats)),
      losses_(*loss_, batch.size(), images_.device()), rows_(options_, positions_ == 1) {
  for (const auto& view : options_.teachers)
    teachers_.emplace_back(view, view.features ? options_.maps : std::vector<std::string>{}, batch.size());
  // Gradients may be added to the weights directly only if each written gradient belongs to a trained parameter. A
  // layer writes the gradients of all its parameters, so this is impossible with chosen layers, fixed head rows and
  // held parameters. It is also impossible with a second pass over replayed rows, which would read weights that the
  // first pass has changed.
  direct_ = optimizer::is_plain_sgd(options_) && !loss_->regularizes() && options_.result == training_result::weights &&
            options_.trained != trainable_part::layers && options_.held_classes == 0 &&
            options_.trained_classes.size() == 0 && options_.rates.empty() &&
            options_.replay_by == replay_pass::joint && !has_held_parameters(net_);
  trained_ = with_rates(trained_segments(net_, trained_classes(options_), choice_), net_, options_.rates);
  const bool padded = options_.evaluation || !choice_.couples_batch_rows(net_);
  clients_.reserve(batch.size());
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const auto& request = training_of(batch[i]);
    if (const auto reason = validate_training_job(request); !reason.empty())
      throw std::invalid_argument(reason);
    if (const auto reason = validate_rows(batch[i].request); !reason.empty())
      throw std::invalid_argument(reason);
    if (const auto reason = validate_weights(batch[i].request); !reason.empty())
      throw std::invalid_argument(reason);
    has_soft_targets_ =
        has_soft_targets_ || request.annotations.targets.defined() || request.replay.annotations.targets.defined();
    auto& trained = clients_.emplace_back();
    trained.job = &request;
    trained.place = i;
    trained.plan = {options_.epochs == 0 ? 0 : request.samples.size(), options_.batch_rows, padded,
                    drops_short_step(options_)};
    const auto replayable = request.replay.samples.size();
    if (!has_second_view(request))
      trained.replayed = {options_.replay_short_last ? replayable : std::min(options_.replay_rows, replayable),
                          options_.replay_rows, padded};
    else if (trained.plan.steps() > 0)
      trained.replayed = trained.plan;
    trained.replay.begin(request, trained.replayed);
  }
  const auto order_of = [](const client& trained) {
    return std::tuple(trained.plan.steps(), trained.replayed_padded(0), last_padded_rows(trained.plan));
  };
  const auto longer = [&](const client& a, const client& b) { return order_of(a) > order_of(b); };
  if (!std::is_sorted(clients_.begin(), clients_.end(), longer)) // most batches are sorted already
    std::stable_sort(clients_.begin(), clients_.end(), longer);
  place_orders();
}

/// Assigns a part of the memory for row positions to every client.
void fused_training::place_orders() {
  std::size_t rows = 0;
  for (const auto& trained : clients_)
    rows += static_cast<std::size_t>(trained.plan.rows);
  buffers_.order.resize(rows);
  auto* order = buffers_.order.data();
  for (auto& trained : clients_) {
    auxiliaries_.push_back(trained.job->auxiliary);
    trained.order = {order, static_cast<std::size_t>(trained.plan.rows)};
    order += trained.plan.rows;
  }
}

outcomes fused_training::run(slice_monitor* monitor) {
  if (trains_one_by_one())
    return run_one_by_one(monitor);
  const auto steps_max = clients_[0].plan.steps();
  for (std::int64_t epoch = 0; epoch < options_.epochs; ++epoch) {
    for (std::size_t k = 0; k < clients_.size(); ++k)
      begin_epoch(k, epoch);
    prefetch_rows({.first = 0, .count = std::ssize(clients_)}, 0);
    if (epoch == 0 && steps_max > 0)
      take_weights();
    auto active = std::ssize(clients_);
    for (std::int64_t s = 0; s < steps_max; ++s) {
      if (monitor && monitor->should_stop())
        return outcomes(clients_.size(), job_outcome{std::string(interrupted_text)});
      while (clients_[static_cast<std::size_t>(active - 1)].plan.steps() <= s)
        --active;
      step(epoch, s, active);
    }
    for (std::size_t k = 0; k < clients_.size(); ++k)
      if (clients_[k].observer)
        clients_[k].observer->end_epoch(weights_.select(0, static_cast<std::int64_t>(k)));
  }
  copy_to_host();
  outcomes results(clients_.size());
  for (std::size_t k = 0; k < clients_.size(); ++k)
    results[clients_[k].place] = outcome_of(clients_[k], static_cast<std::int64_t>(k));
  return results;
}

/// Allocates one row of weights per client. Training changes the row in place, and the outcome refers to the row
/// without a copy.
void fused_training::take_memory() {
  const auto models = std::ssize(clients_), size = net_.size();
  const auto row = ceil_div<std::int64_t>(size, cache_line_floats) * cache_line_floats;
  weights_ = at::empty({models, row}, at::TensorOptions(at::kFloat).device(images_.device())).narrow(1, 0, size);
}

/// Copies the start weights into the group and allocates gradients, teachers, observers and the optimizer.
void fused_training::take_weights() {
  take_memory();
  const auto models = std::ssize(clients_), size = net_.size(), row = weights_.stride(0);
  const auto options = weights_.options();
  if (!direct_ && (!buffers_.gradients.defined() || buffers_.gradients.numel() < models * row))
    buffers_.gradients = at::empty({models * row}, options);
  if (!direct_)
    gradients_ = buffers_.gradients.narrow(0, 0, models * row).view({models, row}).narrow(1, 0, size);
  for (std::size_t k = 0; k < clients_.size(); ++k) {
    auto& client = clients_[k];
    if (client.plan.steps() == 0)
      continue;
    const auto& start = start_of(client);
    const auto* const before = k > 0 ? &clients_[k - 1] : nullptr;
    client.start = before && before->job->start == client.job->start ? before->start : start.to(images_.device());
    for (std::size_t t = 0; t < teachers_.size(); ++t) {
      const auto& teacher = client.job->teachers[t];
      teachers_[t].set_weights(k, before && before->job->teachers[t] == teacher
                                      ? teachers_[t].weights(k - 1)
                                      : teacher->at(flat_weights).to(images_.device()));
    }
    if (client.job->observation)
      client.observer = client.job->observation->begin(client.start);
    const auto model_row = static_cast<std::int64_t>(k);
    if (client.start.is_cpu())
      std::copy_n(client.start.const_data_ptr<float>(), size, weights_.mutable_data_ptr<float>() + model_row * row);
    else
      weights_.select(0, model_row).copy_(client.start);
  }
  keep_frozen_views();
  take_result_memory();
  if (!direct_ && !result_.defined())
    optimizer_ = std::make_unique<optimizer>(options_, trained_, weights_, gradients_, &buffers_.moments);
}

/// Computes the outputs of frozen nets that do not change between steps, client by client.
void fused_training::keep_frozen_views() {
  row_wise_ = dynamic_cast<const row_wise_model*>(&net_);
  const bool keeps =
      row_wise_ && positions_ == 1 && images_.device().is_cpu() && options_.result == training_result::weights &&
      std::all_of(clients_.begin(), clients_.end(),
                  [&](const client& trained) { return frozen_outputs::may_keep(options_, *trained.job); });
  if (!keeps)
    return;
  frozen_outputs views(*row_wise_, options_, choice_);
  features_of_frozen_ = !options_.evaluation && views.has_frozen_front();
  for (std::size_t k = 0; k < clients_.size(); ++k) {
    auto& client = clients_[k];
    if (client.plan.steps() == 0)
      break;
    for (std::size_t t = 0; t < teachers_.size(); ++t)
      teachers_[t].keep_rows(
          k, views.find_teacher_rows(client.job->samples, options_.teachers[t], teachers_[t].weights(k), images_));
    if (!features_of_frozen_)
      continue;
    client.in_front = std::make_unique<train_job>(*client.job);
    client.in_front->samples = views.features_of_frozen(client.job->samples, client.start, images_);
    client.job = client.in_front.get();
  }
}

const at::Tensor& fused_training::start_of(const client& trained) const {
  return trained.job->start->at(flat_weights); // validate_weights() has validated them
}

void fused_training::begin_epoch(std::size_t k, std::int64_t epoch) {
  clients_[k].shuffle(epoch);
  losses_.begin_epoch(k);
}

/// Runs step s of the first `active` clients, with one call per step shape.
void fused_training::step(std::int64_t epoch, std::int64_t s, std::int64_t active) {
  const auto shape_of = [&](std::int64_t k) {
    const auto& client = clients_[static_cast<std::size_t>(k)];
    return step_shape{.own = client.plan.padded_rows_of(s),
                      .replayed = client.replayed_padded(epoch * client.plan.steps() + s)};
  };
  for (model_run run; run.first < active; run.first += run.count) {
    const auto shape = shape_of(run.first);
    run.count = 1;
    while (run.first + run.count < active && shape_of(run.first + run.count) == shape)
      ++run.count;
    step_of(run, shape, epoch, s);
  }
}

void fused_training::step_of(model_run run, const step_shape& shape, std::int64_t epoch, std::int64_t s) {
  fill(run, shape, epoch, s);
  auto& group = view_of(run);
  const training_mode training{name_streams(run, epoch, s), &choice_, options_.running_stats_updates};
  const auto outputs = forward(group, shape, training);
  const auto first = static_cast<std::size_t>(run.first), count = static_cast<std::size_t>(run.count);
  const loss_input in{.logits = outputs.logits,
                      .features = outputs.features,
                      .labels = buffers_.labels,
                      .row_weight = buffers_.row_weight,
                      .auxiliaries = std::span(auxiliaries_).subspan(first, count),
                      .teachers = teacher_outputs(run, shape, s),
                      .maps = outputs.maps,
                      .replayed = shape.replayed * positions_,
                      .targets = has_soft_targets_ ? buffers_.targets : at::Tensor{},
                      .label_smoothing = options_.label_smoothing,
                      .is_padded = positions_ > 1 || is_padded(run, shape, epoch, s)};
  const auto result = (*loss_)(in);
  if (epoch + 1 == options_.epochs)
    losses_.add(run, result);
  observe(run, epoch, outputs, result.values);
  backward(group, shape, result);
  if (direct_)
    return;
  if (options_.result != training_result::weights)
    return record_gradients(run, s);
  if (loss_->regularizes())
    regularize(run, epoch);
  std::vector<std::int64_t> taken;
  for (std::size_t k = first; k < first + count; ++k)
    taken.push_back(epoch * clients_[k].plan.steps() + s + 1);
  optimizer_->step(run, taken);
}

void fused_training::observe(model_run run, std::int64_t epoch, const activations& outputs, const at::Tensor& losses) {
  for (std::int64_t k = 0; k < run.count; ++k) {
    const auto& observer = clients_[static_cast<std::size_t>(run.first + k)].observer;
    if (observer)
      observer->observe({.epoch = epoch,
                         .logits = outputs.logits.defined() ? outputs.logits[k] : at::Tensor{},
                         .features = outputs.features[k],
                         .labels = buffers_.labels[k],
                         .loss = losses[k]});
  }
}

/// Runs the forward pass on all rows of the step, or on own and replayed rows separately, and joins the outputs.
activations fused_training::forward(group_view& group, const step_shape& shape, const training_mode& training) {
  buffers_.kept.maps = options_.maps;
  if (features_of_frozen_)
    return row_wise_->forward_from_features(group.weights, buffers_.inputs, options_.classes, buffers_.kept, training);
  const auto pass = [&](const at::Tensor& inputs, tape& kept, const training_mode& mode) {
    return net_.forward(group.weights, inputs, options_.classes, &kept, options_.evaluation ? nullptr : &mode);
  };
  if (shape.replayed == 0 || options_.replay_by == replay_pass::joint)
    return pass(buffers_.inputs, buffers_.kept, training);

  buffers_.kept_of_replayed.maps = options_.maps;
  streams_of_replayed_ = streams_;
  for (auto& key : streams_of_replayed_)
    key.index |= std::uint64_t{1} << 27U; // after the indices of all steps of an epoch
  const training_mode of_replayed{streams_of_replayed_, training.trained, training.running_stats_updates};
  const auto own = pass(buffers_.inputs.narrow(1, 0, shape.own).contiguous(), buffers_.kept, training);
  const auto replayed =
      pass(buffers_.inputs.narrow(1, shape.own, shape.replayed).contiguous(), buffers_.kept_of_replayed, of_replayed);
  const auto side_by_side = [](const at::Tensor& first, const at::Tensor& second) {
    return first.defined() ? at::cat({first, second}, 1) : first;
  };
  activations both{.features = side_by_side(own.features, replayed.features),
                   .logits = side_by_side(own.logits, replayed.logits)};
  for (std::size_t m = 0; m < own.maps.size(); ++m)
    both.maps.push_back(side_by_side(own.maps[m], replayed.maps[m]));
  return both;
}

/// Computes the gradients of the step; for plain SGD, adds the step to the weights.
void fused_training::backward(group_view& group, const step_shape& shape, const loss_output& result) {
  const bool from_logits = options_.classes.size() > 0 && result.d_logits.defined();
  if (!direct_ && !from_logits && !result.d_features.defined())
    group.gradients.zero_(); // parameters after the last map or before the features receive no gradient
  const auto pass = [&](tape& kept, std::int64_t first, std::int64_t rows, const gradient_sink& sink) {
    const auto part_of = [&](const at::Tensor& d) {
      if (!d.defined() || rows == shape.rows())
        return d;
      const auto per_row = d.size(1) / shape.rows(); // predictions
      return d.narrow(1, first * per_row, rows * per_row).contiguous();
    };
    kept.d_maps = result.d_maps;
    for (auto& d : kept.d_maps)
      d = part_of(d);
    kept.d_head_logits = part_of(result.d_head_logits);
    net_.backward(group.weights, kept, options_.classes, part_of(result.d_logits), part_of(result.d_features), choice_,
                  sink);
  };
  if (direct_)
    return pass(buffers_.kept, 0, shape.rows(), {group.weights, static_cast<float>(-options_.learning_rate), true});
  if (shape.replayed == 0 || options_.replay_by == replay_pass::joint)
    return pass(buffers_.kept, 0, shape.rows(), {group.gradients});
  pass(buffers_.kept, 0, shape.own, {group.gradients});
  pass(buffers_.kept_of_replayed, shape.own, shape.replayed, {group.gradients, 1.0F, true});
}

/// Outputs of all teachers for the step's rows.
std::vector<activations> fused_training::teacher_outputs(model_run run, const step_shape& shape, std::int64_t s) {
  std::vector<activations> outputs;
  for (const auto& teacher : teachers_) {
    if (!teacher.keeps_rows()) {
      outputs.push_back(teacher.compute_outputs(net_, run, buffers_.inputs, buffers_.of_teacher));
      continue;
    }
    std::vector<std::span<const std::int64_t>> positions;
    for (auto k = run.first; k < run.first + run.count; ++k)
      positions.push_back(clients_[static_cast<std::size_t>(k)].positions_of(s));
    outputs.push_back(teacher.stored_outputs(run, positions, shape.own, net_.feature_width()));
  }
  return outputs;
}

bool fused_training::is_padded(model_run run, const step_shape& shape, std::int64_t epoch, std::int64_t s) const {
  for (auto k = run.first; k < run.first + run.count; ++k) {
    const auto& client = clients_[static_cast<std::size_t>(k)];
    if (client.plan.rows_of(s) + client.replayed_rows(epoch * client.plan.steps() + s) < shape.rows())
      return true;
  }
  return false;
}

/// Keys of the net's random draws in this step, one per model.
std::span<const rng_key> fused_training::name_streams(model_run run, std::int64_t epoch, std::int64_t s) {
  streams_.clear();
  for (auto k = run.first; net_.uses_random_numbers() && k < run.first + run.count; ++k) {
    auto key = key_for(clients_[static_cast<std::size_t>(k)].job->stream, purpose::dropout_mask);
    key.index = static_cast<std::uint64_t>(epoch) << 28U | static_cast<std::uint64_t>(s); // each layer appends 8 bits
    streams_.push_back(key);
  }
  return streams_;
}

/// Gathers the step's rows and writes labels, weights and targets; padded rows have weight 0.
void fused_training::fill(model_run run, const step_shape& shape, std::int64_t epoch, std::int64_t s) {
  const auto rows = shape.rows(), classes = options_.classes.size();
  const auto& device = images_.device();
  const auto [channels, height, width] = clients_[static_cast<std::size_t>(run.first)].job->samples.source->shape();
  auto& inputs = buffers_.inputs;
  if (!inputs.defined())
    inputs = at::empty({0}, at::TensorOptions(at::kFloat).device(device));
  reshape_buffer(inputs, {run.count, rows, channels, height, width}, inputs);
  shape_marks(run, rows);
  const bool is_on_host = device.is_cpu();
  auto* const labels = (is_on_host ? buffers_.labels : buffers_.host_labels).mutable_data_ptr<std::int64_t>();
  auto* const weights = (is_on_host ? buffers_.row_weight : buffers_.host_row_weight).mutable_data_ptr<float>();
  auto* const targets =
      has_soft_targets_ ? (is_on_host ? buffers_.targets : buffers_.host_targets).mutable_data_ptr<float>() : nullptr;
  rows_.clear();
  for (std::int64_t i = 0; i < run.count; ++i)
    rows_.add(clients_[static_cast<std::size_t>(run.first + i)], shape, epoch, s,
              {.labels = labels + i * rows,
               .weights = weights + i * rows,
               .targets = targets ? targets + i * rows * classes : nullptr});
  if (!is_on_host) {
    buffers_.labels = buffers_.host_labels.to(device, /*non_blocking=*/true);
    buffers_.row_weight = buffers_.host_row_weight.to(device, /*non_blocking=*/true);
    if (has_soft_targets_)
      buffers_.targets = buffers_.host_targets.to(device, /*non_blocking=*/true);
  }
  auto listed = inputs.flatten(0, 1); // [K B, C, H, W]
  rows_.gather_into(listed, images_);
  if (positions_ > 1)
    mark_tokens();
  prefetch_rows(run, s + 1);
}

/// Replaces the labels and weights of rows [K, B] with labels and weights of tokens [K, B * T]. The label of a token is
/// the next token of its row, or -1 for the last token. The weight of a row is divided equally among its tokens with a
/// label.
void fused_training::mark_tokens() {
  const auto tokens = buffers_.inputs.flatten(2); // [K, B, T]
  const auto next = tokens.narrow(2, 1, positions_ - 1).to(at::kLong);
  const auto row_weight = buffers_.row_weight.unsqueeze(2) / static_cast<double>(positions_ - 1); // [K, B, 1]
  const auto is_padding = buffers_.labels.eq(-1).unsqueeze(2);
  buffers_.labels = at::constant_pad_nd(next.masked_fill(is_padding, -1), {0, 1}, -1).flatten(1);
  buffers_.row_weight = at::constant_pad_nd(row_weight.expand_as(next), {0, 1}, 0.0).flatten(1);
}

/// Allocates host memory for labels, row weights and targets. On a CPU the loss reads this memory directly. For a
/// device, pinned memory is allocated in every step. Copies are then asynchronous, and LibTorch reuses the memory only
/// after the copy.
void fused_training::shape_marks(model_run run, std::int64_t rows) {
  const auto classes = options_.classes.size();
  if (const auto& device = images_.device(); !device.is_cpu()) {
    const auto pinned = at::TensorOptions(at::kFloat).pinned_memory(device.is_cuda());
    buffers_.host_labels = at::empty({run.count, rows}, pinned.dtype(at::kLong));
    buffers_.host_row_weight = at::empty({run.count, rows}, pinned);
    if (has_soft_targets_)
      buffers_.host_targets = at::empty({run.count, rows, classes}, pinned);
    return;
  }
  auto &labels = buffers_.labels, &row_weight = buffers_.row_weight, &targets = buffers_.targets;
  if (!labels.defined()) {
    labels = at::empty({0}, at::kLong);
    row_weight = at::empty({0}, at::kFloat);
    targets = at::empty({0}, at::kFloat);
  }
  reshape_buffer(labels, {run.count, rows}, labels, at::kLong);
  reshape_buffer(row_weight, {run.count, rows}, row_weight);
  if (has_soft_targets_)
    reshape_buffer(targets, {run.count, rows, classes}, targets);
}

/// Prefetches the rows of step s while another step is computed. Rows are scattered in memory, and waiting for them
/// takes longer than normalizing them.
void fused_training::prefetch_rows(model_run run, std::int64_t s) const {
  if (!images_.device().is_cpu())
    return;
  auto left = tuning::prefetched_bytes_max;
  for (auto k = run.first; k < run.first + run.count; ++k) {
    const auto& client = clients_[static_cast<std::size_t>(k)];
    if (s >= client.plan.steps())
      continue;
    const auto& samples = client.job->samples;
    const row_prefetcher ahead(*samples.source);
    const auto first = s * options_.batch_rows, last = first + client.plan.rows_of(s);
    for (auto i = first; i < last && left > 0; ++i) {
      const auto position = static_cast<std::size_t>(client.order[static_cast<std::size_t>(i)]);
      left -= ahead.fetch((*samples.rows)[position]);
    }
  }
}

void fused_training::regularize(model_run run, std::int64_t epoch) {
  for (auto k = run.first; k < run.first + run.count; ++k) {
    const auto& client = clients_[static_cast<std::size_t>(k)];
    const auto weights = weights_.select(0, k), gradients = gradients_.select(0, k); // [P]
    for (const auto& piece : trained_) {
      const auto own = weights.narrow(0, piece.offset, piece.size);
      const auto start = client.start.narrow(0, piece.offset, piece.size);
      auto target = gradients.narrow(0, piece.offset, piece.size);
      loss_->regularize(own, start, piece.offset, client.job->auxiliary.get(), target);
      if (epoch + 1 == options_.epochs)
        for (const auto& penalty : loss_->penalties(own, start, piece.offset, client.job->auxiliary.get()))
          losses_.add(k, penalty);
    }
  }
}

fused_training::group_view& fused_training::view_of(model_run run) {
  auto& view = views_[{run.first, run.count}];
  if (!view.weights.defined()) {
    view.weights = weights_.narrow(0, run.first, run.count);
    if (!direct_)
      view.gradients = gradients_.narrow(0, run.first, run.count);
  }
  return view;
}

} // namespace mneme
