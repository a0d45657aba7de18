#include "runtime/modules/compute_in_mode.hpp"
#include "runtime/kernels/dropout.hpp"
#include <ATen/TensorOperators.h>
#include <ATen/ops/_scaled_dot_product_attention_math.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <algorithm>
#include <c10/util/Exception.h>
#include <cmath>
#include <fmt/format.h>
#include <stdexcept>
namespace mneme {
namespace {

using c10::IValue;
using call_stack = std::vector<IValue>;

std::size_t argument_place(const exported_call& call, const char* argument) {
  return static_cast<std::size_t>(call.op->schema().argumentIndexWithName(argument).value());
}

at::Tensor tensor_argument(const exported_call& call, const call_stack& stack, const char* argument) {
  const auto& value = stack[argument_place(call, argument)];
  return value.isTensor() ? value.toTensor() : at::Tensor{};
}

double rate_of(const exported_call& call, const call_stack& stack) {
  const auto rate = stack[static_cast<std::size_t>(call.rate_argument)].toDouble();
  if (!(rate <= 1.0))
    throw std::runtime_error(fmt::format("its dropout rate is {}; expected at most 1", rate));
  return rate;
}

/// Draws a mask: 0 with probability `rate`, else 1, with the same random numbers as dropout_layer.
/// @param number index of the mask within the pass
at::Tensor kept_values(const module_mode& mode, std::int64_t number, at::IntArrayRef shape, double rate,
                       const at::Device& device) {
  auto key = mode.stream;
  key.index = key.index << 8U | static_cast<std::uint64_t>(number);
  const auto drop_below = static_cast<std::uint32_t>(std::min(std::lround(rate * 65536.0), 65535L));
  auto mask = at::empty(shape, at::TensorOptions(at::kByte));
  if (rate >= 1.0)
    mask.zero_();
  else
    kernels::draw_dropout_mask(stream_name_of(key), drop_below, mask.mutable_data_ptr<std::uint8_t>(), mask.numel());
  return mask.to(device);
}

double scale_of(double rate) { return rate < 1.0 ? 1.0 / (1.0 - rate) : 0.0; }

at::Tensor dropped(const at::Tensor& values, const module_mode& mode, std::int64_t number, at::IntArrayRef shape,
                   double rate) {
  return values * kept_values(mode, number, shape, rate, values.device()).to(values.scalar_type()).mul_(scale_of(rate));
}

void compute_dropout(const exported_call& call, call_stack& stack, const module_mode& mode) {
  auto values = stack[0].toTensor();
  const auto rate = rate_of(call, stack);
  auto shape = values.sizes().vec();
  if (call.name.starts_with("feature")) {
    if (shape.size() < 2)
      throw std::runtime_error("feature dropout of values with fewer than two axes");
    std::fill(shape.begin() + 2, shape.end(), 1);
  }
  if (call.writes_argument())
    values.copy_(dropped(values, mode, call.first_draw, shape, rate));
  else
    values = dropped(values, mode, call.first_draw, shape, rate);
  stack.assign(1, std::move(values));
}

/// Bernoulli draw: 1 with the given probability, else 0. In evaluation mode the result is the probability.
void compute_draw(const exported_call& call, call_stack& stack, const module_mode& mode) {
  auto values = stack[0].toTensor();
  const auto chance = rate_of(call, stack);
  if (mode.training)
    values.copy_(kept_values(mode, call.first_draw, values.sizes(), 1.0 - chance, values.device()));
  else
    values.fill_(chance);
  stack.assign(1, std::move(values));
}

/// Suppresses LibTorch's warning that the dropout mask argument is for tests only.
class ignored_warnings final : public c10::WarningHandler {
  void process(const c10::Warning&) override {}
};

/// Attention from elementary operators: LibTorch's fused kernels would draw the dropout mask themselves.
void compute_attention(const exported_call& call, call_stack& stack, const module_mode& mode) {
  const auto queries = tensor_argument(call, stack, "query"), keys = tensor_argument(call, stack, "key");
  const auto rate = rate_of(call, stack);
  auto shape = queries.sizes().vec();
  shape.back() = keys.size(-2);
  const auto mask = tensor_argument(call, stack, "attn_mask");
  const auto& scale = stack[argument_place(call, "scale")];
  ignored_warnings ignored;
  const c10::WarningUtils::WarningHandlerGuard quiet(&ignored);
  auto result = std::get<0>(at::_scaled_dot_product_attention_math(
      queries, keys, tensor_argument(call, stack, "value"), mask.defined() ? std::optional(mask) : std::nullopt, rate,
      stack[argument_place(call, "is_causal")].toBool(),
      kept_values(mode, call.first_draw, shape, rate, queries.device()).to(at::kBool),
      scale.isDouble() ? std::optional(scale.toDouble()) : std::nullopt,
      stack[argument_place(call, "enable_gqa")].toBool()));
  stack.assign(1, std::move(result));
}

/// Selects `count` states beginning at `first`: a list of two tensors for an LSTM, one tensor for other cells.
IValue states_of_layer(const IValue& states, std::int64_t first, std::int64_t count) {
  if (states.isTensor())
    return states.toTensor().narrow(0, first, count);
  c10::List<at::Tensor> parts;
  for (const auto& state : states.toTensorVector())
    parts.push_back(state.narrow(0, first, count));
  return parts;
}

/// Computes layer by layer and applies a dropout mask after each layer except the last.
/// @pre the call has passed its contract
void compute_recurrent(const exported_call& call, call_stack& stack, const module_mode& mode) {
  const auto layers = stack[argument_place(call, "num_layers")].toInt();
  const std::int64_t directions = stack[argument_place(call, "bidirectional")].toBool() ? 2 : 1;
  const auto weights = stack[argument_place(call, "params")].toTensorVector();
  const auto each = std::ssize(weights) / layers;
  const auto rate = rate_of(call, stack);
  const auto states = stack[argument_place(call, "hx")];
  auto values = tensor_argument(call, stack, "input");
  std::vector<std::vector<at::Tensor>> last(call.op->schema().returns().size() - 1); // [states][layers]
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    auto of_layer = stack;
    of_layer[argument_place(call, "input")] = values;
    of_layer[argument_place(call, "hx")] = states_of_layer(states, layer * directions, directions);
    of_layer[argument_place(call, "params")] =
        std::vector<at::Tensor>(weights.begin() + layer * each, weights.begin() + (layer + 1) * each);
    of_layer[argument_place(call, "num_layers")] = std::int64_t{1};
    of_layer[argument_place(call, "dropout")] = 0.0;
    call.op->callBoxed(of_layer);
    values = of_layer[0].toTensor();
    for (std::size_t i = 0; i < last.size(); ++i)
      last[i].push_back(of_layer[i + 1].toTensor());
    if (layer + 1 < layers)
      values = dropped(values, mode, call.first_draw + layer, values.sizes(), rate);
  }
  stack.assign(1, values);
  for (const auto& state : last)
    stack.emplace_back(at::cat(state));
}

// -- norms ------------------------------------------------------------------------------------------------------------

/// Mean and biased variance of each channel over all other axes.
module_statistics statistics_of(const exported_call& call, const at::Tensor& rows) {
  std::vector<std::int64_t> axes;
  for (std::int64_t axis = 0; axis < rows.dim(); ++axis)
    if (axis != 1)
      axes.push_back(axis);
  const auto channels = std::max<std::int64_t>(rows.size(1), 1);
  return {.mean = call.mean,
          .variance = call.variance,
          .batch_mean = rows.mean(axes),
          .batch_variance = rows.var(axes, false),
          .values = rows.numel() / channels};
}

/// In training mode the running statistics are updated `running_stats_updates` times. A mini-batch with one value per
/// channel, which PyTorch rejects, does not change them.
void compute_norm(const exported_call& call, call_stack& stack, const module_mode& mode) {
  const bool is_still = !mode.still.empty() && (mode.still[call.mean] || mode.still[call.variance]);
  const bool in_training = mode.training && !is_still;
  const auto rows = tensor_argument(call, stack, "input");
  auto& momentum = stack[argument_place(call, "momentum")];
  if (mode.statistics) {
    mode.statistics->push_back(statistics_of(call, rows));
    mode.statistics->back().moves = in_training;
    mode.statistics->back().momentum = momentum.toDouble();
  }
  stack[static_cast<std::size_t>(call.mode_argument)] = in_training;
  if (in_training && mode.running_stats_updates != 1)
    momentum = 1.0 - std::pow(1.0 - momentum.toDouble(), static_cast<double>(mode.running_stats_updates));
  if (in_training && (rows.numel() <= rows.size(1) || mode.statistics))
    stack[argument_place(call, "running_mean")] = stack[argument_place(call, "running_var")] = IValue();
  call.op->callBoxed(stack);
}

} // namespace

void compute_in_mode(const exported_call& call, call_stack& stack, const module_mode& mode) {
  if (call.kind == call_kind::batch_norm)
    return compute_norm(call, stack, mode);
  if (call.kind == call_kind::draw)
    return compute_draw(call, stack, mode);
  if (mode.training && call.rate_argument >= 0) {
    if (call.kind == call_kind::dropout)
      return compute_dropout(call, stack, mode);
    if (call.kind == call_kind::attention)
      return compute_attention(call, stack, mode);
    return compute_recurrent(call, stack, mode);
  }
  if (!mode.training && call.mode_argument >= 0)
    stack[static_cast<std::size_t>(call.mode_argument)] = false;
  if (call.kind == call_kind::attention && call.rate_argument >= 0)
    stack[static_cast<std::size_t>(call.rate_argument)] = 0.0;
  call.op->callBoxed(stack);
}

} // namespace mneme
