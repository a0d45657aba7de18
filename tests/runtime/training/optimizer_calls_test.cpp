#include "runtime/training/optimizer_calls.hpp"
#include <ATen/ATen.h> // before Catch2, whose CHECK must be the last definition

#include "tests/support/device_cases.hpp"
#include "tests/support/learning.hpp"
using namespace mneme;
using namespace mneme::test;

namespace {

/// State of the optimizer in addition to weights and gradients, on the host.
struct moments {
  at::Tensor first{}, second{};
};

void take_step(const models_in_step& models, const training_options& options, std::span<const std::int64_t> taken) {
  if (options.clip_norm > 0.0) {
    auto partial = at::zeros({models.run.count, kernels::cuda::norm_lanes}, at::kDouble);
    auto factor = at::empty({models.run.count});
    const auto calls = calls_to_clip(models, options.clip_norm, partial, factor);
    for (const auto& call : calls.squares)
      run_on_host(call);
    run_on_host(calls.factors);
    for (const auto& call : calls.scaled)
      run_on_host(call, 3, 2);
  }
  if (options.optimizer == optimizer_kind::sgd)
    for (const auto& call : sgd_calls(models, options))
      run_on_host(call, 7, 2);
  else
    for (const auto& call : adam_calls(models, options, taken))
      run_on_host(call);
}

/// Largest weight difference after three steps of the models 1 to 3 of five, between both implementations.
double difference(const training_options& options, std::int64_t size, std::int64_t pitch) {
  const auto trained = odd_segments(size);
  auto weights = drawn_rows(5, size, pitch, 1), twin = weights.clone();
  auto gradients = drawn_rows(5, size, pitch, 2), twin_gradients = at::empty_like(gradients);
  const bool adaptive = options.optimizer != optimizer_kind::sgd;
  moments own;
  if (adaptive || options.momentum != 0.0)
    own.first = at::zeros({5, pitch}).narrow(1, 0, size);
  if (adaptive)
    own.second = at::zeros({5, pitch}).narrow(1, 0, size);
  optimizer reference(options, trained, twin, twin_gradients);
  for (std::int64_t t = 1; t <= 3; ++t) {
    gradients.copy_(drawn_floats({5, size}, static_cast<std::uint64_t>(t) + 2));
    twin_gradients.copy_(gradients);
    const std::vector<std::int64_t> taken{t, 2 * t, t + 5};
    take_step({weights, gradients, own.first, own.second, trained, {1, 3}}, options, taken);
    reference.step({1, 3}, taken);
  }
  CHECK(same_bits(weights[0], twin[0])); // model 0 takes no step
  CHECK(same_bits(weights[4], twin[4]));
  return largest_difference(weights.contiguous(), twin.contiguous());
}

} // namespace

TEST_CASE("the threads of a grid together take an optimizer's step", "[kernels]") {
  for (const auto kind : {optimizer_kind::sgd, optimizer_kind::adam, optimizer_kind::adamw})
    for (const double extra : {0.0, 1.0})
      for (const std::int64_t size : {1, 4, 64, 101, 1003}) {
        const training_options options{.optimizer = kind,
                                       .learning_rate = 0.05,
                                       .momentum = 0.9 * extra,
                                       .weight_decay = 0.01 * extra,
                                       .clip_norm = 1.5 * extra};
        for (const auto pitch : {size, (size + 15) / 16 * 16}) {
          CAPTURE(static_cast<int>(kind), extra, size, pitch);
          CHECK(difference(options, size, pitch) < 1e-5); // a step is 0.05; multiply-add may or may not be fused
        }
      }
}

TEST_CASE("groups of four values are read at once only if every row is aligned", "[kernels]") {
  const std::vector<segment> trained{{0, 8}};
  const auto quads = [&](std::int64_t pitch, std::int64_t offset) {
    const auto rows = at::zeros({2 * pitch + offset}).narrow(0, offset, 2 * pitch).view({2, pitch}).narrow(1, 0, 8);
    return sgd_calls({rows, rows, {}, {}, trained, {0, 2}}, {})[0].quads;
  };
  CHECK(quads(8, 0));
  CHECK(quads(12, 4));
  CHECK_FALSE(quads(9, 0));
  CHECK_FALSE(quads(8, 1));
}

TEST_CASE("a launch holds sixteen segments, and 256 models with separate numbers of steps", "[kernels]") {
  auto rows = at::zeros({600, 100});
  std::vector<segment> trained;
  for (std::int64_t i = 0; i < 33; ++i)
    trained.push_back({3 * i, i == 5 ? 0 : 2}); // an empty segment is ignored
  CHECK(sgd_calls({rows, rows, {}, {}, trained, {0, 600}}, {}).size() == 2);
  std::vector<std::int64_t> taken(599);
  std::iota(taken.begin(), taken.end(), 1);
  const training_options options{.optimizer = optimizer_kind::adam, .learning_rate = 0.1};
  const auto calls = adam_calls({rows, rows, rows, rows, trained, {1, 599}}, options, taken);
  REQUIRE(calls.size() == 6);
  CHECK(calls[5].models == 599 - 2 * kernels::cuda::fused_clients_max);
  CHECK(calls[2].weights.data == rows.const_data_ptr<float>() + (1 + kernels::cuda::fused_clients_max) * 100);
  CHECK(calls[2].rates[3].step_size == adam_step_of(options, 1.0, kernels::cuda::fused_clients_max + 4).step_size);
  CHECK(calls[1].pieces.at[15].end == 3 * 32 + 2);
}

TEST_CASE("a gradient with NaN is not scaled by its norm", "[kernels]") {
  const auto nan = std::numeric_limits<float>::quiet_NaN();
  auto gradients = at::tensor({nan, 4.0F, 3.0F, 4.0F}).view({2, 2}), twin = gradients.clone();
  auto weights = at::zeros({2, 2});
  const std::vector<segment> trained{{0, 2}};
  const training_options options{.learning_rate = 0.0, .weight_decay = 1.0, .clip_norm = 1.0};
  optimizer reference(options, trained, weights, twin);
  reference.step({0, 2}, std::vector<std::int64_t>{1, 1});
  take_step({weights, gradients, {}, {}, trained, {0, 2}}, options, {});
  CHECK(std::isnan(gradients[0][0].item<float>()));
  CHECK(same_bits(gradients.flatten().narrow(0, 1, 3), twin.flatten().narrow(0, 1, 3)));
  CHECK(twin[1][0].item<float>() < 0.61F);
}

TEST_CASE("no grid is larger than a device allows, and none is empty", "[kernels]") {
  using kernels::cuda::grid_for;
  for (const std::int64_t columns : {0, 1, 256, 257, 1 << 20, 1 << 30})
    for (const std::int64_t rows : {0, 1, 3, 1024, 1 << 20}) {
      const auto grid = grid_for(columns, rows);
      CHECK((1 <= grid.blocks_x && 1 <= grid.blocks_y));
      CHECK(grid.blocks_x * grid.blocks_y <= kernels::cuda::blocks_max);
    }
  CHECK(grid_for(257, 3).blocks_x == 2);
  CHECK(grid_for(257, 3).blocks_y == 3);
  CHECK(grid_for(kernels::cuda::norm_lanes, 5).blocks_x * kernels::cuda::block_threads == kernels::cuda::norm_lanes);
}
