// Trains the clients of a group one after the other, for nets of a few fully connected layers.
#include "runtime/training/fused_training.hpp"
#include <algorithm>
namespace mneme {

bool fused_training::trains_one_by_one() const {
  return images_.device().is_cpu() && direct_ && net_.dense_layers() && loss_ == cross_entropy_objective() &&
         choice_.whole() && options_.teachers.empty() && options_.maps.empty() && options_.replay_rows == 0 &&
         !clients_[0].job->observation && !has_soft_targets_;
}

outcomes fused_training::run_one_by_one(slice_monitor* monitor) {
  std::int64_t rows_max = 0; // number of rows of the largest step
  for (const auto& client : clients_)
    if (client.plan.steps() > 0)
      rows_max = std::max(rows_max, client.plan.padded_rows_of(0));
  const auto& layers = *net_.dense_layers();
  dense_chain net(layers, options_.classes.low, options_.classes.high, rows_max);
  buffers_.row_values.resize(static_cast<std::size_t>(rows_max * layers.front().in));
  buffers_.row_labels.resize(static_cast<std::size_t>(rows_max));
  buffers_.row_weights.resize(static_cast<std::size_t>(rows_max));
  for (std::size_t k = 0; k < clients_.size(); ++k)
    begin_epoch(k, 0);
  prefetch_rows({.first = 0, .count = 1}, 0);
  if (options_.epochs > 0 && clients_[0].plan.steps() > 0)
    take_memory();
  outcomes results(clients_.size(), job_outcome{std::string(interrupted_text)});
  for (std::size_t k = 0; k < clients_.size(); ++k) {
    if (!train_alone(net, k, monitor))
      break;
    // Checks the outcome while its weights are in the cache.
    results[clients_[k].place] = outcome_of(clients_[k], static_cast<std::int64_t>(k));
  }
  return results;
}

/// Trains client k. Returns false if `monitor` stops the run between two steps.
bool fused_training::train_alone(dense_chain& net, std::size_t k, slice_monitor* monitor) {
  auto& client = clients_[k];
  const auto steps = client.plan.steps(), at = static_cast<std::int64_t>(k);
  if (steps == 0)
    return true;
  const float* from = start_of(client).const_data_ptr<float>();
  float* const weights = weights_.mutable_data_ptr<float>() + at * weights_.stride(0);
  if (!net.moves_all()) {
    std::copy_n(from, net_.size(), weights);
    from = weights;
  }
  for (std::int64_t epoch = 0; epoch < options_.epochs; ++epoch) {
    if (epoch > 0)
      begin_epoch(k, epoch);
    for (std::int64_t s = 0; s < steps; ++s) {
      if (monitor && monitor->should_stop())
        return false;
      const auto rows = client.plan.padded_rows_of(s);
      rows_.clear();
      rows_.add(client, {.own = rows}, epoch, s,
                {.labels = buffers_.row_labels.data(), .weights = buffers_.row_weights.data()});
      rows_.gather_into(buffers_.row_values.data());
      if (s + 1 < steps)
        prefetch_rows({.first = at, .count = 1}, s + 1);
      else if (k + 1 < clients_.size())
        prefetch_rows({.first = at + 1, .count = 1}, 0);
      losses_.add(k, net.run_step({.weights = from,
                                   .moved = weights,
                                   .inputs = buffers_.row_values.data(),
                                   .labels = buffers_.row_labels.data(),
                                   .row_weight = buffers_.row_weights.data(),
                                   .rows = rows,
                                   .learning_rate = static_cast<float>(options_.learning_rate),
                                   .label_smoothing = options_.label_smoothing}));
      from = weights;
    }
  }
  return true;
}

} // namespace mneme
