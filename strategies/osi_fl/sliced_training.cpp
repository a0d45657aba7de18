#include "strategies/osi_fl/sliced_training.hpp"
#include "runtime/base/ceil_div.hpp"
#include "runtime/base/check.hpp"
#include "runtime/method/gradients.hpp"
#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros_like.h>
#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
namespace mneme {
namespace {

constexpr double first_decay = 0.9, second_decay = 0.999, epsilon = 1e-8; // values of Adam (Kingma and Ba 2015)

/// State of a training between steps.
struct adam_state {
  at::Tensor weights, first, second, mean; // [P] each; `mean` is the running mean of the weights

  explicit adam_state(const at::Tensor& start)
      : weights(start.clone()), first(at::zeros_like(start)), second(at::zeros_like(start)), mean(start.clone()) {}
  explicit adam_state(const tensor_map& saved)
      : weights(saved.at("weights").clone()), first(saved.at("first").clone()), second(saved.at("second").clone()),
        mean(saved.at("mean").clone()) {}
  [[nodiscard]] named_tensors saved() const {
    return {{"weights", weights}, {"first", first}, {"second", second}, {"mean", mean}};
  }
};

void take_step(adam_state& state, at::Tensor gradient, const adam_settings& settings, std::int64_t step,
               std::int64_t steps) {
  if (settings.norm_max > 0.0) {
    const auto norm = gradient.norm().item<double>();
    if (norm > settings.norm_max)
      gradient = gradient * (settings.norm_max / norm);
  }
  const double rate = rate_of_step(settings, step, steps), count = static_cast<double>(step + 1);
  if (settings.decay > 0.0)
    state.weights.mul_(1.0 - rate * settings.decay);
  state.first.mul_(first_decay).add_(gradient, 1.0 - first_decay);
  state.second.mul_(second_decay).addcmul_(gradient, gradient, 1.0 - second_decay);
  const double second_scale = std::sqrt(1.0 - std::pow(second_decay, count));
  const auto divisor = (state.second.sqrt() / second_scale).add_(epsilon);
  state.weights.addcdiv_(state.first, divisor, -rate / (1.0 - std::pow(first_decay, count)));
  if (settings.averages) {
    const double kept = std::min(0.999, (count) / (count + 9.0));
    state.mean.mul_(kept).add_(state.weights, 1.0 - kept);
  }
}

} // namespace

double rate_of_step(const adam_settings& settings, std::int64_t step, std::int64_t steps) {
  const double done = static_cast<double>(step) / static_cast<double>(std::max<std::int64_t>(steps, 1));
  const double wave = (1.0 + std::cos(std::numbers::pi * done)) / 2.0;
  const double rate = settings.rate * (settings.last_share + (1.0 - settings.last_share) * wave);
  return step < settings.warm_up ? rate * static_cast<double>(step + 1) / static_cast<double>(settings.warm_up) : rate;
}

std::vector<declared_tensor> sliced_training::outcome(const program_job&) const {
  return {{.name = "weights", .shape = {size()}}};
}

slice_result sliced_training::run_call(const program_call& call) const {
  const auto total = steps(call), first = call.slice * steps_of_slice();
  const auto last = std::min(total, first + steps_of_slice());
  auto state = call.slice == 0 ? adam_state(initial(call).to(call.device())) : adam_state(call.state);
  for (auto step = first; step < last; ++step) {
    const auto moving = leaf_of(state.weights);
    take_step(state, gradients_of(loss(call, moving, step), {moving}).front(), settings_, step, total);
  }
  if (last == total)
    return {.tensors = {{"weights", settings_.averages ? state.mean : state.weights}}};
  return {
      .tensors = state.saved(), .finished = false, .progress = static_cast<double>(last) / static_cast<double>(total)};
}

std::vector<std::int64_t> positions_of_step(std::int64_t rows, std::int64_t batch, std::int64_t step, rng_key key) {
  MNEME_CHECK(rows > 0 && batch > 0, rows, batch);
  const auto batches = steps_of_passes(rows, batch, 1);
  key.index = static_cast<std::uint64_t>(step / batches);
  std::vector<std::int64_t> order(static_cast<std::size_t>(rows));
  std::iota(order.begin(), order.end(), 0);
  rng_stream(key).shuffle(std::span(order));
  const auto first = step % batches * batch, last = std::min(rows, first + batch);
  return {order.begin() + first, order.begin() + last};
}

std::int64_t steps_of_passes(std::int64_t rows, std::int64_t batch, std::int64_t passes) {
  return std::max<std::int64_t>(1, ceil_div(rows, batch) * passes);
}

at::Tensor normal_numbers(at::IntArrayRef shape, const rng_key& key) {
  auto numbers = at::empty(shape, at::kFloat);
  auto* const value = numbers.mutable_data_ptr<float>();
  rng_stream draw(key);
  for (std::int64_t i = 0; i < numbers.numel(); ++i)
    value[i] = static_cast<float>(draw.normal());
  return numbers;
}

} // namespace mneme
