#include "strategies/baselines/pilora/pilora_server.hpp"
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
namespace mneme::pilora_method {

namespace {

enum draws : std::uint32_t { low_rank_draw = first_method_purpose };

} // namespace

// Axes: d channels, r rank, K uploads, c classes of the task, n means of a class.

at::Tensor centers_of(const run_settings& run, const at::Tensor& flat, class_range classes) {
  return as_in_files(flat, run.centers()).narrow(0, classes.low, classes.size());
}

/// Stores the LoRA of the previous task. Then draws a new A and sets B to zeros.
task<task_plan> pilora_server::open_task(server_context& /*ctx*/, const round_info& info) {
  task_began_ = info.round.value;
  if (opened_++ > 0) {
    earlier_.push_back(low_rank_now());
    auto flat = weights_.clone();
    for (const auto& entry : run_->low_rank()) {
      const auto drawn = at::zeros(entry.shape, at::kFloat);
      if (entry.bound > 0.0) {
        rng_stream draw({.seed = run_->setup.seed,
                         .purpose = low_rank_draw,
                         .task = info.task,
                         .index = static_cast<std::uint64_t>(entry.offset)});
        auto* const values = drawn.mutable_data_ptr<float>();
        for (std::int64_t i = 0; i < drawn.numel(); ++i)
          values[i] = static_cast<float>(draw.uniform(-entry.bound, entry.bound));
      }
      put_as_in_files(flat, entry, drawn.to(flat.device()));
    }
    weights_ = flat;
  }
  co_return task_plan{};
}

tensors_ref pilora_server::low_rank_now() const {
  auto parts = std::make_shared<tensor_map>();
  for (const auto& entry : run_->low_rank())
    parts->put(entry.name, as_in_files(weights_, entry).clone());
  return parts;
}

/// Sends the trained tensors. From task 2 on, also sends the centers and the A of earlier tasks.
broadcast pilora_server::open_round(const round_info& info) {
  auto sent = std::make_shared<tensor_map>();
  for (const auto& entry : run_->low_rank())
    sent->put(entry.name, as_in_files(weights_, entry).clone());
  sent->put(task_centers, centers_of(*run_, weights_, info.current_classes).clone());
  broadcast out{.info = {}, .weights = sent, .extra = nullptr, .initial_payload = initial_};
  if (earlier_.empty())
    return out;
  auto past = std::make_shared<tensor_map>();
  past->put(earlier_centers, centers_of(*run_, weights_, {0, info.current_classes.low}).clone());
  for (const auto& entry : run_->low_rank()) {
    if (entry.bound == 0.0) // B is initially 0
      continue;
    std::vector<at::Tensor> downs;
    for (const auto& parts : earlier_)
      downs.push_back(parts->at(entry.name));
    past->put(earlier_weight_name(entry), at::cat(downs));
  }
  out.extra = std::move(past);
  return out;
}

task<void> pilora_server::close_round(server_context& /*ctx*/, const round_info& info) {
  if (!uploads_.empty()) {
    auto flat = weights_.clone();
    average_low_rank(flat);
    average_centers(flat, info.current_classes);
    weights_ = flat;
  }
  uploads_.clear();
  co_return;
}

/// Averages the LoRAs, weighted by rows, in float64 and in delivery order.
void pilora_server::average_low_rank(at::Tensor& flat) const {
  for (const auto& entry : run_->low_rank()) {
    auto sum = at::zeros(entry.shape, flat.options().dtype(at::kDouble));
    double rows = 0.0;
    for (const auto& upload : uploads_) {
      sum.add_(upload.tensors->at(entry.name).to(flat.device(), at::kDouble), upload.rows);
      rows += upload.rows;
    }
    if (rows > 0.0)
      put_as_in_files(flat, entry, (sum / rows).to(at::kFloat));
  }
}

/// Averages the clients' centers of each class, weighted by their distances to the clients' mean features of the class
/// (center_weights).
void pilora_server::average_centers(at::Tensor& flat, class_range classes) const {
  std::vector<std::vector<at::Tensor>> means(static_cast<std::size_t>(classes.size())); // [c][n] vectors [d]
  std::vector<at::Tensor> sent;
  for (const auto& [tensors, rows] : uploads_) {
    sent.push_back(tensors->at(task_centers).cpu());
    const auto* const theirs = tensors->find(class_means);
    if (!theirs)
      continue;
    const auto numbers = tensors->at(classes_of_means).cpu();
    for (std::int64_t i = 0; i < numbers.numel(); ++i) {
      const auto c = static_cast<std::size_t>(numbers[i].item<std::int64_t>());
      means.at(c).push_back((*theirs)[i].cpu().to(at::kDouble));
    }
  }
  const auto stacked = at::stack(sent).to(at::kDouble); // [K, c, d]
  auto into = centers_of(*run_, flat, classes);
  for (std::int64_t c = 0; c < classes.size(); ++c) {
    const auto& own = means[static_cast<std::size_t>(c)];
    const auto centers = stacked.select(1, c);
    const auto known = own.empty() ? at::empty({0, stacked.size(2)}, at::kDouble) : at::stack(own);
    const auto weights = center_weights(centers, known, run_->settings.temperature);
    into[c].copy_((weights.unsqueeze(1) * centers).sum(0).to(at::kFloat));
  }
}

// -- evaluation -------------------------------------------------------------------------------------------------------

namespace {

/// Adds two LoRAs name by name: (A_1 + A_t, B_1 + B_t).
tensors_ref added(const tensor_map& first, const tensor_map& second) {
  auto sum = std::make_shared<tensor_map>();
  for (const auto& [name, value] : first)
    sum->put(name, value + second.at(name));
  return sum;
}

} // namespace

/// Returns the LoRAs whose products B A are added to the transformer's weights.
std::vector<tensors_ref> pilora_server::evaluated() const {
  const auto now = low_rank_now();
  if (earlier_.empty())
    return {now};
  switch (run_->settings.evaluate) {
  case evaluated_parts::released:
    return {earlier_.front()};
  case evaluated_parts::first_and_present:
    return {added(*earlier_.front(), *now)};
  case evaluated_parts::sum:
    break;
  }
  auto parts = earlier_;
  parts.push_back(now);
  return parts;
}

/// Merges the LoRAs into W_q + sum B_q A_q and W_v + sum B_v A_v, and sets B in the net to zeros.
predictor pilora_server::predict() const {
  auto flat = weights_.clone();
  const auto& net = *run_->net;
  const auto sets = evaluated();
  for (const auto& own : net.parts()) {
    auto joint = as_in_files(flat, run_->entry(net.attention_weight(own.block))); // [3 d, d], a view
    const auto d = joint.size(1);
    for (const auto& parts : sets) {
      const auto product = [&](std::size_t down, std::size_t up) {
        return at::matmul(parts->at(run_->entry(up).name), parts->at(run_->entry(down).name));
      };
      joint.narrow(0, 0, d).add_(product(own.query_down, own.query_up));
      joint.narrow(0, 2 * d, d).add_(product(own.value_down, own.value_up));
    }
    for (const auto up : {own.query_up, own.value_up})
      as_in_files(flat, run_->entry(up)).zero_();
  }
  return {.net = run_->net, .weights = weights_only(flat)};
}

} // namespace mneme::pilora_method
