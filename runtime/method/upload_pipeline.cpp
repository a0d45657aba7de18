#include "runtime/method/upload_pipeline.hpp"
#include "runtime/method/aggregated_server.hpp"
#include "runtime/method/flat_update.hpp"
#include "runtime/method/update_steps.hpp"
#include "runtime/method/upload_size.hpp"
#include <ATen/ATen.h>
#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <numeric>
#include <stdexcept>
namespace mneme {
namespace {

/// Key of a random stream of uploads for a client's round.
rng_key upload_key(const client_context& ctx, upload_purpose purpose_id) {
  return ctx.stream(static_cast<std::uint32_t>(purpose_id));
}

/// The training rows with label low + high - 1 - y in place of y, where [low, high) are the classes of y's task (label
/// flipping as in Fang et al. 2020, "Local Model Poisoning Attacks to Byzantine-Robust Federated Learning", section 5).
std::shared_ptr<const dataset> flip_labels(const task_stream& tasks) {
  auto flipped = std::make_shared<dataset>(*tasks.train);
  for (auto& label : flipped->labels)
    for (const auto& task : tasks.tasks)
      if (label >= task.classes.low && label < task.classes.high) {
        label = static_cast<std::int32_t>(task.classes.low + task.classes.high - 1 - label);
        break;
      }
  return flipped;
}

/// The memory without the pipeline's tensor.
memory_ref memory_of_method(const memory_ref& memory) {
  if (!memory || !memory->find(upload_error_name))
    return memory;
  auto own = std::make_shared<tensor_map>();
  for (const auto& [name, value] : *memory)
    if (name != upload_error_name)
      own->put(name, value);
  return own->empty() ? nullptr : own;
}

/// The method's memory with the pipeline's tensor added. @param method may be null
memory_ref with_error(const memory_ref& method, const at::Tensor& error) {
  auto both = method ? std::make_shared<tensor_map>(*method) : std::make_shared<tensor_map>();
  both->put(upload_error_name, error);
  return both;
}

at::Tensor float_tensor(const std::vector<double>& values) {
  auto tensor = at::empty({std::ssize(values)}, at::kFloat);
  std::transform(values.begin(), values.end(), tensor.mutable_data_ptr<float>(),
                 [](double value) { return static_cast<float>(value); });
  return tensor;
}

} // namespace

bool has_upload_pipeline(const scenario& settings) {
  const auto& uploads = settings.uploads;
  return uploads.clip_norm > 0.0 || uploads.noise_multiplier > 0.0 || uploads.compresses() || uploads.is_masked() ||
         settings.aggregation.rule != aggregation_rule::mean || settings.clients.attack != attack_kind::none;
}

std::vector<std::uint32_t> attackers_of(const scenario& settings) {
  if (settings.clients.attack == attack_kind::none)
    return {};
  std::vector<std::uint32_t> ids(static_cast<std::size_t>(settings.clients.count));
  std::iota(ids.begin(), ids.end(), 0u);
  rng_stream draw({.seed = static_cast<std::uint64_t>(settings.seed),
                   .purpose = static_cast<std::uint32_t>(upload_purpose::attackers)});
  draw.shuffle(std::span(ids));
  ids.resize(static_cast<std::size_t>(std::llround(settings.clients.attackers * static_cast<double>(ids.size()))));
  std::sort(ids.begin(), ids.end());
  return ids;
}

upload_pipeline::upload_pipeline(std::shared_ptr<const strategy> method, const scenario& settings,
                                 const task_stream& tasks)
    : method_(std::move(method)), seed_(static_cast<std::uint64_t>(settings.seed)), uploads_(settings.uploads),
      aggregation_(settings.aggregation), clients_(settings.clients), cohort_(full_cohort(settings)),
      attackers_(attackers_of(settings)) {
  if (clients_.attack == attack_kind::label_flip)
    flipped_ = flip_labels(tasks);
}

method_needs upload_pipeline::needs() const {
  auto wanted = method_->needs();
  wanted.upload_size_known = wanted.upload_size_known && !changes_upload_bytes(uploads_);
  return wanted;
}

bool upload_pipeline::attacks(client_id client) const {
  return std::binary_search(attackers_.begin(), attackers_.end(), client.value);
}

// -- the client half --------------------------------------------------------------------------------------------------

/// Inputs of the method's round: memory without the pipeline's tensor, and flipped labels if the client attacks with
/// flipped labels.
assignment upload_pipeline::inner_assignment(const client_context& ctx) const {
  auto inner = ctx.assigned();
  inner.memory = memory_of_method(inner.memory);
  if (flipped_ && attacks(ctx.self()))
    inner.samples.source = flipped_;
  return inner;
}

task<client_result> upload_pipeline::client_round(client_context& ctx, const broadcast& in) const {
  const auto inner = inner_assignment(ctx);
  client_context own(ctx, inner);
  auto training = method_->client_round(own, in);
  auto result = co_await training;
  co_return processed(ctx, in, std::move(result));
}

task<client_result> upload_pipeline::client_observe(client_context& ctx, const broadcast& in) const {
  const auto inner = inner_assignment(ctx);
  client_context own(ctx, inner);
  auto observing = method_->client_observe(own, in);
  auto result = co_await observing;
  if (const auto* const error = ctx.memory().find(upload_error_name); error && result.memory)
    result.memory = with_error(result.memory, *error);
  co_return result;
}

void upload_pipeline::attack(std::vector<double>& update, const rng_key& key) const {
  if (clients_.attack == attack_kind::sign_flip)
    for (auto& value : update)
      value *= -clients_.attack_scale;
  if (clients_.attack != attack_kind::noise)
    return;
  std::fill(update.begin(), update.end(), 0.0);
  add_gaussian(update, clients_.attack_scale, key);
}

void upload_pipeline::compress(std::vector<double>& update, const rng_key& key) const {
  keep_largest(update, kept_entries(uploads_.top_k, std::ssize(update)));
  if (uploads_.quantise > 0)
    quantise_update(update, uploads_.quantise, uploads_.rounding, key);
  for (auto& value : update) // rounds to float32, the type of uploads
    value = static_cast<float>(value);
}

client_result upload_pipeline::processed(const client_context& ctx, const broadcast& in, client_result result) const {
  if (!result.upload || !in.weights)
    return result;
  if (method_->uploads() == upload_content::weights)
    if (const auto name = tensor_without_weights(*result.upload, *in.weights); !name.empty())
      throw std::runtime_error(
          fmt::format("the upload has the tensor '{}', which the broadcast does not have; [uploads] "
                      "and [aggregation] need uploads of weights only",
                      name));
  auto update = flat_update(*result.upload, *in.weights);
  if (attacks(ctx.self()))
    attack(update, upload_key(ctx, upload_purpose::attack_noise));
  if (uploads_.clip_norm > 0.0)
    clip_update(update, uploads_.clip_norm);
  if (uploads_.noise_multiplier > 0.0 && uploads_.noise == noise_place::client)
    add_gaussian(update, uploads_.noise_multiplier * uploads_.clip_norm, upload_key(ctx, upload_purpose::client_noise));
  if (uploads_.compresses()) {
    const auto* const error = uploads_.error_feedback ? ctx.memory().find(upload_error_name) : nullptr;
    if (error && error->numel() == std::ssize(update)) // a method may change which tensors are sent
      for (std::size_t i = 0; i < update.size(); ++i)
        update[i] += error->const_data_ptr<float>()[i];
    auto wanted = update;
    compress(update, upload_key(ctx, upload_purpose::rounding));
    if (uploads_.error_feedback) {
      for (std::size_t i = 0; i < update.size(); ++i)
        wanted[i] -= update[i];
      const auto memory = result.memory ? result.memory : memory_of_method(ctx.assigned().memory);
      result.memory = with_error(memory, float_tensor(wanted));
    }
  }
  result.upload = with_update(*result.upload, *in.weights, update);
  return result;
}

std::unique_ptr<server_half> upload_pipeline::make_server() const {
  return std::make_unique<aggregated_server>(
      method_->make_server(),
      aggregated_server::options{.seed = seed_, .uploads = uploads_, .aggregation = aggregation_, .cohort = cohort_});
}

} // namespace mneme
