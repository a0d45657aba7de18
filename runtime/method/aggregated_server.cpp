#include "runtime/method/aggregated_server.hpp"
#include "runtime/base/archive.hpp"
#include "runtime/method/aggregation_rules.hpp"
#include "runtime/method/flat_update.hpp"
#include "runtime/method/update_steps.hpp"
#include "runtime/method/upload_pipeline.hpp"
#include <bit>
namespace mneme {
namespace {

/// Adds the noise that round `step` (from 1) of the tree adds to the sum of all rounds: the node that the round
/// completes, minus the nodes that this node replaces (Kairouz et al. 2021, "Practical and Private (Deep) Learning
/// without Sampling or Shuffling", section 3.1, with the plain estimator of a prefix sum).
void add_tree_noise(std::vector<double>& update, double deviation, std::uint64_t seed, std::uint64_t step) {
  const auto completed = static_cast<std::uint32_t>(std::countr_zero(step));
  add_gaussian(update, deviation, tree_node_key(seed, completed, (step >> completed) - 1));
  for (std::uint32_t level = 0; level < completed; ++level)
    add_gaussian(update, -deviation, tree_node_key(seed, level, ((step - 1) >> level) - 1));
}

} // namespace

rng_key tree_node_key(std::uint64_t seed, std::uint32_t level, std::uint64_t index) {
  return {.seed = seed,
          .purpose = static_cast<std::uint32_t>(upload_purpose::server_noise),
          .client = server_client_id,
          .visit = level,
          .index = index};
}

aggregated_server::aggregated_server(std::unique_ptr<server_half> method, options options)
    : method_(std::move(method)), options_(options) {}

task<task_plan> aggregated_server::open_task(server_context& ctx, const round_info& info) {
  auto opening = method_->open_task(ctx, info);
  const auto plan = co_await opening;
  co_return plan;
}

broadcast aggregated_server::open_round(const round_info& info) {
  auto sent = method_->open_round(info);
  sent_ = sent.weights;
  round_ = info.round;
  folded_ = 0;
  return sent;
}

void aggregated_server::fold(const delivery& in) {
  if (has_rule())
    return held_.push_back(in);
  const bool is_first = folded_++ == 0;
  method_->fold(is_first && options_.uploads.has_server_noise() ? noisy(in) : in);
  if (is_first && options_.uploads.has_server_noise())
    ++noisy_steps_;
}

/// The upload with the round's noise. Each upload has weight 1, so noise added to one upload adds the same noise to the
/// sum of updates.
delivery aggregated_server::noisy(const delivery& in) const {
  const auto deviation = options_.uploads.noise_multiplier * options_.uploads.clip_norm;
  auto update = flat_update(*in.upload, *sent_);
  if (options_.uploads.noise == noise_place::tree)
    add_tree_noise(update, deviation, options_.seed, noisy_steps_ + 1);
  else
    add_gaussian(update, deviation, tree_node_key(options_.seed, 0, noisy_steps_));
  auto changed = in;
  changed.upload = with_update(*in.upload, *sent_, update);
  return changed;
}

/// Folds a zero update for each client of the full cohort that has not delivered.
void aggregated_server::fold_absent() {
  for (; folded_ < options_.cohort; ++folded_)
    method_->fold({.from = server_client_id, .started_from = round_, .upload = sent_, .rows = 1});
}

void aggregated_server::fold_held() {
  std::vector<std::vector<float>> values;
  for (const auto& upload : held_)
    values.push_back(flat_values(*upload.upload, *sent_));
  const std::vector<upload_values> uploads(values.begin(), values.end());
  const auto result = aggregate_uploads(uploads, options_.aggregation);
  for (auto& upload : std::exchange(held_, {})) {
    upload.upload = with_values(*upload.upload, *sent_, result);
    method_->fold(upload);
  }
}

task<void> aggregated_server::close_round(server_context& ctx, const round_info& info) {
  if (has_rule() && !held_.empty())
    fold_held();
  if (options_.uploads.has_server_noise() && folded_ > 0)
    fold_absent();
  auto closing = method_->close_round(ctx, info);
  co_await closing;
  co_return;
}

void aggregated_server::persist(archive& state) {
  method_->persist(state);
  state.section("uploads")(sent_)(round_)(folded_)(noisy_steps_);
  auto count = static_cast<std::uint64_t>(held_.size());
  state(count);
  if (state.loading())
    held_.clear();
  for (std::uint64_t i = 0; i < count; ++i) {
    auto& [assignment, from, started_from, upload, rows, start, staleness, staleness_weight] =
        state.loading() ? held_.emplace_back() : held_[i];
    state(assignment)(from)(started_from)(upload)(rows)(start)(staleness)(staleness_weight);
  }
}

} // namespace mneme
