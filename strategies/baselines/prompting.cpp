#include "strategies/baselines/prompting.hpp"
#include <ATen/TensorOperators.h>
#include <ATen/ops/dot.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/ones_like.h>
#include <algorithm>
#include <fmt/format.h>
namespace mneme {

namespace {

enum prompt_draws : std::uint32_t { prompt_draw = first_method_purpose };
constexpr double drawn_length_min = 1e-8; // shortest length of a projected draw, as in the official code; shorter ones
                                          // are drawn again

} // namespace

// Axes: k rows of n elements each.

at::Tensor with_orthogonal_rows(const at::Tensor& rows, std::int64_t fresh, rng_stream& draw) {
  auto flat = rows.flatten(1).to(at::kDouble).clone(); // [k, n]
  for (auto i = flat.size(0) - fresh; i < flat.size(0); ++i) {
    auto own = flat[i];
    auto* const values = own.mutable_data_ptr<double>();
    do {
      for (std::int64_t j = 0; j < own.numel(); ++j)
        values[j] = draw.normal();
      const auto drawn = own.clone();
      for (std::int64_t before = 0; before < i; ++before) {
        const auto square = at::dot(flat[before], flat[before]).item<double>();
        if (square > 0.0)
          own.sub_(flat[before], at::dot(drawn, flat[before]).item<double>() / square);
      }
    } while (own.norm().item<double>() < drawn_length_min);
    own.div_(own.norm());
  }
  return flat.to(at::kFloat).view(rows.sizes());
}

// -- the loss ---------------------------------------------------------------------------------------------------------

loss_ref prompted_objective(const char* map, double weight) {
  return differentiable_objective(
      {.identity = fmt::format("prompted {} {}", map, weight),
       .terms = {"cross_entropy", map},
       .reads_label_smoothing = true},
      [weight](const loss_rows& in) -> std::vector<at::Tensor> {
        return {cross_entropy_rows(in.logits, in.labels, in.label_smoothing), in.maps[0].flatten() * weight};
      });
}

// -- server half ------------------------------------------------------------------------------------------------------

task<task_plan> prompting_server::open_task(server_context& ctx, const round_info& info) {
  auto opening = averaging_server::open_task(ctx, info);
  const auto plan = co_await opening;
  const bool sums = net_->prompts().form == prompt_form::components;
  if (sums ? opened_ < net_->tasks() : opened_ == 0) {
    auto flat = weights().clone();
    sums ? draw_components(flat) : draw_slots(flat);
    set_weights(std::move(flat));
  }
  ++opened_;
  co_return plan;
}

rng_stream prompting_server::stream_of(std::size_t place) const {
  return rng_stream({.seed = seed_,
                     .purpose = prompt_draw,
                     .visit = static_cast<std::uint32_t>(place),
                     .index = static_cast<std::uint64_t>(opened_)});
}

void prompting_server::draw_components(at::Tensor& flat) const {
  const auto of_task = net_->prompts().of_task;
  for (const auto& pool : net_->pools())
    for (const auto place : {pool.values, pool.keys, pool.focus}) {
      const auto& entry = net_->layout()[place];
      auto draw = stream_of(place);
      const auto components = as_in_files(flat, entry).cpu().clone();
      auto begun = components.narrow(0, 0, (opened_ + 1) * of_task);
      begun.copy_(with_orthogonal_rows(begun, of_task, draw));
      put_as_in_files(flat, entry, components.to(flat.device()));
    }
}

/// Draws slots and keys from U(0, 1), as in the official code.
void prompting_server::draw_slots(at::Tensor& flat) const {
  std::vector<std::size_t> places = net_->general();
  for (const auto& pool : net_->pools())
    places.insert(places.end(), {pool.values, pool.keys});
  for (const auto place : places) {
    const auto& entry = net_->layout()[place];
    auto draw = stream_of(place);
    const auto drawn = at::empty(entry.shape, at::kFloat);
    auto* const values = drawn.mutable_data_ptr<float>();
    for (std::int64_t i = 0; i < drawn.numel(); ++i)
      values[i] = static_cast<float>(draw.uniform());
    put_as_in_files(flat, entry, drawn.to(flat.device()));
  }
}

// -- client half ------------------------------------------------------------------------------------------------------

preset stsa_preset() {
  return {"stsa",
          "as in STSA's comparison, with 2 epochs and unweighted means; the learning rate of the comparison is not "
          "published",
          "[strategy]\nweighting = \"uniform\"\n[training]\nepochs = 2\nbatch = 128\noptimizer = \"adam\"\n"
          "learning_rate = 1e-3\n"};
}

method_needs prompting_method::needs() const {
  auto needed = averaging_method::needs();
  needed.prompts = prompts();
  needed.defaults = "[model]\nname = \"vit\"\n[training]\noptimizer = \"adam\"\nlearning_rate = 1e-3\n";
  return needed;
}

namespace {

diagnostics prompts_error(const prompt_shape& prompts) {
  diagnostics errors;
  const auto check_length = [&](const char* key, std::int64_t length) {
    if (length % 2 != 0)
      errors.push_back(
          {fmt::format("strategy.{}", key),
           fmt::format("strategy.{} = {}: half of a prompt precedes the keys, half the values; expected an even number",
                       key, length)});
  };
  check_length("length", prompts.length);
  if (!prompts.general.empty())
    check_length("general_length", prompts.general_length);
  auto blocks = prompts.blocks;
  blocks.insert(blocks.end(), prompts.general.begin(), prompts.general.end());
  std::sort(blocks.begin(), blocks.end());
  const auto twice = std::adjacent_find(blocks.begin(), blocks.end());
  if (twice != blocks.end())
    errors.push_back(
        {"strategy.blocks",
         fmt::format("strategy.blocks: block {} has two prompts, but a block reads one; expected each block once{}",
                     *twice, prompts.general.empty() ? "" : ", or in general_blocks")});
  return errors;
}

} // namespace

diagnostics validate_class_repeats(const method_setup& setup, const char* part) {
  std::int64_t next = 0;
  for (const auto& classes : setup.task_classes) {
    if (classes.low < next)
      return {{"tasks.kind", fmt::format("tasks.kind: class {} occurs in a second task, but a task's {} found by its "
                                         "classes; expected \"class-incremental\"",
                                         classes.low, part)}};
    next = classes.high;
  }
  return {};
}

diagnostics prompting_method::check(const method_setup& setup) const {
  auto errors = averaging_method::check(setup);
  const auto* const net = dynamic_cast<const prompted_vit*>(setup.net.get());
  if (!net) {
    errors.push_back({"model.name",
                      fmt::format("the net '{}' has no attention blocks to read prompts; expected model.name = \"vit\"",
                                  setup.net->identity())});
    return errors;
  }
  if (setup.trainable != trainable_part::all)
    errors.push_back({"model.trainable", "model.trainable: the transformer is always frozen, and prompts are trained "
                                         "together with the head; expected \"all\""});
  append(errors, prompts_error(prompts()));
  append(errors, validate_class_repeats(setup, "prompts are"));
  if (setup.training.weight_decay > 0.0)
    errors.push_back({"training.weight_decay", fmt::format("training.weight_decay = {}: prompts of earlier tasks would "
                                                           "shrink, but they have to stay unchanged; expected 0",
                                                           setup.training.weight_decay)});
  const auto with = prompts();
  const auto elements = net->feature_width(), rows = with.of_task * net->tasks();
  if (with.form == prompt_form::components && rows > elements)
    errors.push_back(
        {"strategy.components", fmt::format("{} components of {} tasks cannot be orthogonal in a width of {}; expected "
                                            "fewer strategy.components or a larger model.width",
                                            rows, net->tasks(), elements)});
  return errors;
}

void prompting_method::prepare(const method_setup& setup) {
  averaging_method::prepare(setup);
  net_ = std::dynamic_pointer_cast<const prompted_vit>(setup.net);
}

std::unique_ptr<server_half> prompting_method::make_server() const {
  return std::make_unique<prompting_server>(setup(), net_);
}

void prompting_method::block_keys(key_table& table, prompt_shape& into) {
  table.integers("blocks", into.blocks, {.low = 0, .high = 199},
                 "Blocks of the transformer whose attention reads prompts, counted from 0.");
  table.integer("length", into.length, {.low = 2, .high = 1024},
                "Number of vectors of a prompt, an even number; one half precedes the keys, the other the values.");
}

void prompting_method::component_keys(key_table& table, prompt_shape& into) {
  block_keys(table, into);
  table.integer("components", into.of_task, {.low = 1, .high = 10'000},
                "Number of components that a task adds to each block.");
  table.flag("softmax_focus", into.softmax_focus,
             "Apply a softmax to a component's trained attention to the query, as in Fed-CPrompt's official code.");
}

} // namespace mneme
