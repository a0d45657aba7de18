#include "runtime/models/attention_layer.hpp"
#include "runtime/models/dropout.hpp"
#include "runtime/models/gelu_layer.hpp"
#include "runtime/models/layout_layers.hpp"
#include "runtime/models/linear_layer.hpp"
#include "runtime/models/lstm_layer.hpp"
#include "runtime/models/normalization.hpp"
#include "runtime/models/pooling.hpp"
#include "runtime/models/token_embedding.hpp"
#include "runtime/models/tokens_linear_layer.hpp"
#include "runtime/models/tokens_norm_layer.hpp"
#include "runtime/models/upsampling.hpp"
#include <ATen/ATen.h> // before Catch2, whose CHECK must be the last definition

#include "tests/support/layer_functions.hpp"
#include "tests/support/nets.hpp"
#include <ATen/Parallel.h>
using namespace mneme;
using namespace mneme::test;

// Axes: K models, B rows, P weights.

namespace {

constexpr std::int64_t nets = 2, rows = 3;

/// Results of a layer, from its kernels or from LibTorch's operators.
struct results {
  at::Tensor weights, out, d_in, gradients;
};

/// Fails if results differ by more than rounding, relative to the largest value.
void check_equal(const results& ours, const results& theirs) {
  const auto near = [](const at::Tensor& a, const at::Tensor& b, double bound) {
    CHECK(largest_difference(a, b) <= bound * std::max(1.0, static_cast<double>(b.abs().max().item<float>())));
  };
  near(ours.out, theirs.out, 2e-5);
  near(ours.d_in, theirs.d_in, 2e-5);
  near(ours.gradients, theirs.gradients, 5e-5);
  near(ours.weights, theirs.weights, 1e-6);
}

/// Runs a layer both ways on random values: first into new memory, then adding to existing values.
template <class Layer>
class twins {
public:
  /// @param scale of the weights
  twins(const Layer& layer, std::int64_t width_in, std::int64_t size, const training_mode* training = nullptr,
        double scale = 1.0)
      : layer_(layer), training_(training), in_(drawn({nets, rows, width_in}, 2)),
        weights_(drawn({nets, size}, 1).abs_().add_(0.1).mul_(scale)), // running variances are positive
        classes_{2, 9} {}

  /// @param frozen true: gradients of the layer's parameters must not be written
  void check(bool frozen = false) {
    frozen_ = frozen;
    for (const bool add : {false, true}) {
      INFO("adding " << add);
      check_equal(by_kernels(add), layer_.is_function(false) ? by_function(add) : by_composites(add));
    }
  }

private:
  results by_kernels(bool add) {
    auto made = prepared(add);
    const layer_pass pass{made.weights, nets, rows, classes_, training_, &memory_};
    at::Tensor kept;
    layer_.forward(pass, in_, made.out, kept);
    auto d_out = drawn(made.out.sizes(), 3);
    auto* const d_in = &made.d_in;
    const bool can_add = add && layer_.adds();
    layer_.backward(pass, {in_, made.out, kept, d_out, d_in, can_add}, sink_of(made, add));
    if (add && !can_add)
      made.d_in.add_(before());
    return made;
  }

  results by_function(bool add) {
    auto made = prepared(add);
    const auto theirs = run_function(layer_, weights_, in_, drawn(made.out.sizes(), 3), classes_, training_);
    made.out = theirs.out;
    made.d_in = add ? theirs.d_in + before() : theirs.d_in;
    auto unread = theirs.d_weights.isnan();
    if (layer_.width({0, 1}) != layer_.width({0, 2})) // a head: it writes only rows of its classes
      unread = unread.logical_or(theirs.d_weights == 0);
    if (!frozen_)
      made.gradients =
          at::where(unread, made.gradients, add ? made.gradients - 0.25 * theirs.d_weights : theirs.d_weights);
    return made;
  }

  results by_composites(bool add) {
    auto made = prepared(add);
    if constexpr (requires { &Layer::composite_forward; }) {
      const layer_pass pass{made.weights, nets, rows, classes_, training_, &memory_};
      at::Tensor kept;
      if constexpr (requires { layer_.composite_forward(pass, in_, made.out, kept); })
        layer_.composite_forward(pass, in_, made.out, kept);
      else
        layer_.composite_forward(pass, in_, made.out);
      auto d_out = drawn(made.out.sizes(), 3);
      layer_.composite_backward(pass, {in_, made.out, kept, d_out, &made.d_in, false}, sink_of(made, add));
      if (add)
        made.d_in.add_(before());
    }
    return made;
  }

  [[nodiscard]] at::Tensor before() const { return drawn(in_.sizes(), 4); }
  [[nodiscard]] results prepared(bool add) const {
    return {weights_.clone(), at::full({nets, rows, layer_.width(classes_)}, 7.0F),
            add ? before() : at::full_like(in_, 7.0F), at::ones_like(weights_)};
  }
  static gradient_sink sink_of(results& made, bool add) { return {made.gradients, add ? -0.25F : 1.0F, add}; }

  const Layer& layer_;
  const training_mode* training_;
  kernels::scratch memory_;
  at::Tensor in_, weights_;
  class_range classes_;
  bool frozen_ = false;
};

/// Gradient of sum(out * a) with respect to a layer's input, by central differences for some elements.
template <class Layer>
void check_slopes(const Layer& layer, const layer_pass& pass, const at::Tensor& in) {
  const auto out_of = [&](const at::Tensor& x) {
    auto out = at::empty({nets, rows, layer.width(pass.classes)});
    at::Tensor kept;
    layer.forward(pass, x, out, kept);
    return std::pair(out, kept);
  };
  const auto [out, kept] = out_of(in);
  const auto a = drawn(out.sizes(), 9);
  auto d_out = a.clone(), d_in = at::full_like(in, 7.0F), unused = at::zeros({nets, 1});
  layer.backward(pass, {in, out, kept, d_out, &d_in}, {unused});
  for (std::int64_t i = 0; i < in.numel(); i += 7) {
    const auto value = [&](float change) {
      auto moved = in.clone();
      moved.mutable_data_ptr<float>()[i] += change;
      return (out_of(moved).first.to(at::kDouble) * a).sum().template item<double>();
    };
    const float change = 1e-2F;
    CHECK(std::abs(d_in.const_data_ptr<float>()[i] - (value(change) - value(-change)) / (2.0 * change)) < 1e-3);
  }
}

} // namespace

TEST_CASE("linear layers and heads by our kernels equal LibTorch's", "[models]") {
  for (const std::int64_t in : {1, 13, 297})
    for (const auto after : {activation::none, activation::relu}) {
      INFO(in << " inputs");
      const bool head = after == activation::none;
      twins(linear_layer({.in = in, .out = 10, .weight_offset = 4, .bias_offset = 3000, .after = after, .head = head}),
            in, 3100)
          .check();
    }
}

TEST_CASE("normalization by our kernels equals LibTorch's operators", "[models]") {
  const training_mode training;
  for (const std::int64_t groups : {0, 1, 3, 6})
    for (const auto* const mode : {&training, static_cast<const training_mode*>(nullptr)})
      for (const auto after : {activation::none, activation::relu})
        for (const std::int64_t channels : {6, 36}) {
          INFO(groups << " groups of " << channels << " channels, training " << (mode != nullptr));
          twins(normalization_layer({.in = {3, 5, channels},
                                     .groups = groups,
                                     .weight_offset = 1,
                                     .bias_offset = 50,
                                     .mean_offset = 100,
                                     .variance_offset = 150,
                                     .after = after}),
                15 * channels, 200, mode)
              .check();
        }
}

TEST_CASE("linear layers of tokens in our loop over models equal LibTorch's operators", "[models]") {
  for (const bool frozen : {false, true})
    for (const auto after : {activation::none, activation::relu}) {
      INFO("frozen " << frozen << ", ReLU " << (after == activation::relu));
      twins(tokens_linear_layer({.tokens = 5,
                                 .in = 13,
                                 .out = 7,
                                 .weight_offset = 4,
                                 .bias_offset = 120,
                                 .scale = 0.3,
                                 .after = after,
                                 .frozen = frozen}),
            5 * 13, 130)
          .check(frozen);
    }
}

TEST_CASE("token normalization by our kernels equals LibTorch's operators", "[models]") {
  for (const bool frozen : {false, true})
    for (const std::int64_t channels : {7, 16, 50})
      twins(tokens_norm_layer(
                {.tokens = 5, .channels = channels, .weight_offset = 1, .bias_offset = 60, .frozen = frozen}),
            5 * channels, 120)
          .check(frozen);
}

TEST_CASE("attention in blocks equals LibTorch's operators on all rows", "[models]") {
  at::set_num_threads(1);
  for (const auto& [tokens, queries, heads, channels] :
       {std::array<std::int64_t, 4>{5, 5, 1, 4}, {17, 17, 3, 18}, {10, 1, 2, 12}, {9, 4, 2, 6}, {330, 330, 2, 8}}) {
    INFO(tokens << " tokens, " << queries << " of them ask, " << heads << " heads, " << channels << " channels");
    twins(attention_layer({.tokens = tokens, .queries = queries, .heads = heads, .channels = channels}),
          tokens * 3 * channels, 1)
        .check();
  }
}

TEST_CASE("GELU by our kernel equals LibTorch's", "[models]") { twins(gelu_layer(77), 77, 1).check(); }

TEST_CASE("an LSTM by our kernels equals LibTorch's operators", "[models]") {
  at::set_num_threads(1);
  for (const auto& [tokens, in, hidden] : {std::array<std::int64_t, 3>{2, 3, 4}, {7, 5, 6}, {4, 17, 16}, {12, 8, 33}}) {
    INFO(tokens << " tokens of " << in << ", memory of " << hidden);
    const auto gates = 4 * hidden;
    const lstm_layer layer({.tokens = tokens,
                            .in = in,
                            .hidden = hidden,
                            .input_weight_offset = 2,
                            .hidden_weight_offset = 3 + gates * in,
                            .input_bias_offset = 4 + gates * (in + hidden),
                            .hidden_bias_offset = 5 + gates * (in + hidden + 1)});
    twins(layer, tokens * in, gates * (in + hidden + 2) + 10, nullptr, 0.1).check();
  }
}

TEST_CASE("upsampling and its gradients equal LibTorch's interpolation", "[models]") {
  for (const auto kind : {upsampling::nearest, upsampling::bilinear})
    for (const auto& [height, width] : {std::pair<std::int64_t, std::int64_t>{10, 14}, {5, 7}, {12, 9}, {3, 4}}) {
      INFO(height << " x " << width << ", bilinear " << (kind == upsampling::bilinear));
      const upsampling_layer layer({5, 7, 3}, height, width, kind);
      const auto in = drawn({nets, rows, 105}, 5), d_out = drawn({nets, rows, layer.width({})}, 6);
      const auto ours = run_function(layer, at::zeros({nets, 1}), in, d_out);
      const autograd_on tracking;
      const auto x = in.clone().requires_grad_(true);
      const auto images = x.view({-1, 5, 7, 3}).permute({0, 3, 1, 2});
      const auto theirs = (kind == upsampling::nearest ? at::upsample_nearest2d(images, {height, width})
                                                       : at::upsample_bilinear2d(images, {height, width}, false))
                              .permute({0, 2, 3, 1})
                              .reshape(d_out.sizes());
      CHECK(largest_difference(ours.out, theirs.detach().contiguous()) < 2e-6);
      CHECK(largest_difference(ours.d_in, torch::autograd::grad({theirs}, {x}, {d_out})[0]) < 1e-5);
    }
}

TEST_CASE("batch normalization on devices equals PyTorch's layer", "[models]") {
  const std::int64_t channels = 6, pixels = 15;
  const training_mode training;
  const auto in = drawn({nets, rows, pixels * channels}, 2);
  for (const auto* const mode : {&training, static_cast<const training_mode*>(nullptr)}) {
    INFO("training " << (mode != nullptr));
    const normalization_layer layer(
        {.in = {3, 5, channels}, .weight_offset = 0, .bias_offset = 6, .mean_offset = 12, .variance_offset = 18});
    auto weights = drawn({nets, 24}, 1).abs_();
    const auto start = weights.clone();
    auto out = at::empty_like(in);
    at::Tensor kept;
    layer.composite_forward({weights, nets, rows, {}, mode}, in, out, kept);
    for (std::int64_t k = 0; k < nets; ++k) {
      const auto value_of = [&](std::int64_t place) { return start[k].narrow(0, 6 * place, 6).clone(); };
      const auto x = in[k].view({rows, 3, 5, channels}).permute({0, 3, 1, 2});
      auto mean = value_of(2), variance = value_of(3);
      const auto y = at::batch_norm(x, value_of(0), value_of(1), mean, variance, mode != nullptr, 0.1, 1e-5, false);
      CHECK(largest_difference(out[k], y.permute({0, 2, 3, 1}).contiguous()) < 1e-5);
      CHECK(largest_difference(weights[k].narrow(0, 12, 6), mean) < 1e-6);
      CHECK(largest_difference(weights[k].narrow(0, 18, 6), variance) < 1e-6);
    }
  }
}

TEST_CASE("a step with one value per channel leaves running statistics unchanged", "[models]") {
  const training_mode training;
  const normalization_layer layer(
      {.in = {1, 1, 2}, .weight_offset = 0, .bias_offset = 2, .mean_offset = 4, .variance_offset = 6});
  const auto weights = drawn({1, 8}, 1).abs_(), start = weights.clone(), in = drawn({1, 1, 2}, 2);
  auto out = at::empty_like(in);
  at::Tensor kept;
  layer.forward({weights, 1, 1, {}, &training}, in, out, kept);
  CHECK(same_bits(weights, start));
  CHECK(largest_difference(out, start.narrow(1, 2, 2).contiguous()) < 1e-4); // only the bias remains
  kept = at::Tensor{};
  layer.composite_forward({weights, 1, 1, {}, &training}, in, out, kept);
  CHECK(same_bits(weights, start));
}

TEST_CASE("layers without parameters have the gradients of finite differences", "[models]") {
  const at::Tensor none = at::zeros({nets, 1});
  kernels::scratch memory;
  const layer_pass pass{none, nets, rows, {}, nullptr, &memory};
  const image_shape in{5, 7, 3};
  const auto x = drawn({nets, rows, in.floats()}, 1);
  check_slopes(mean_pool_layer(in), pass, x);
  check_slopes(subsampling_layer(in, 2, 8), pass, x);
  check_slopes(subsampling_layer(in, 1, 3), pass, x);
  check_slopes(subsampling_layer(in, 2, 8, 2), pass, x);
  check_slopes(channels_last_layer(in), pass, x);
  check_slopes(chosen_token_layer(3, 0), pass, x);
  check_slopes(chosen_token_layer(3, 34), pass, x);
  check_slopes(gelu_layer(in.floats()), pass, x);
  check_slopes(attention_layer({.tokens = 5, .queries = 5, .heads = 1, .channels = 7}), pass, x);
  check_slopes(attention_layer({.tokens = 5, .queries = 2, .heads = 7, .channels = 7}), pass, x);
  const std::vector<rng_key> streams(nets, key_for({.seed = 1}, purpose::dropout_mask));
  const training_mode training{streams};
  check_slopes(dropout_layer(in.floats(), 0, 0.5), {none, nets, rows, {}, &training}, x);
}

TEST_CASE("subsampling takes every second pixel and fills additional channels with zeros", "[models]") {
  const subsampling_layer layer({3, 3, 1}, 2, 3);
  const at::Tensor none = at::zeros({1, 1});
  const auto in = at::arange(1, 10, at::kFloat).view({1, 1, 9});
  auto out = at::full({1, 1, 12}, 7.0F);
  at::Tensor kept;
  layer.forward({none, 1, 1, {}}, in, out, kept);
  CHECK(same_bits(out.flatten(), at::tensor({1.0F, 0.0F, 0.0F, 3.0F, 0.0F, 0.0F, //
                                             7.0F, 0.0F, 0.0F, 9.0F, 0.0F, 0.0F})));
  subsampling_layer({3, 3, 1}, 2, 3, 1).forward({none, 1, 1, {}}, in, out, kept); // zero channels on both sides
  CHECK(same_bits(out.flatten(), at::tensor({0.0F, 1.0F, 0.0F, 0.0F, 3.0F, 0.0F,  //
                                             0.0F, 7.0F, 0.0F, 0.0F, 9.0F, 0.0F})));
}

TEST_CASE("dropout sets its share to zero, scales the rest, and draws only by key", "[models]") {
  const std::int64_t width = 1000;
  const at::Tensor none = at::zeros({1, 1});
  const auto masked = [&](double rate, std::uint64_t number, std::vector<rng_key> streams, std::int64_t of_rows) {
    const training_mode training{streams};
    const auto of_models = std::ssize(streams);
    const auto in = at::ones({of_models, of_rows, width});
    auto out = at::empty_like(in);
    at::Tensor kept;
    const dropout_layer layer(width, number, rate);
    layer.forward({none, of_models, of_rows, {}, &training}, in, out, kept);
    return out;
  };
  const auto key = [](std::uint64_t index) {
    auto stream = key_for({.seed = 4}, purpose::dropout_mask);
    stream.index = index;
    return stream;
  };
  const auto quarter = masked(0.25, 0, {key(1)}, 20);
  const auto zeros = (quarter == 0).sum().item<std::int64_t>();
  CHECK(std::abs(zeros - 5000) < 250); // four standard deviations of B(20,000, 1/4)
  CHECK(((quarter == 0) | (quarter == 4.0F / 3.0F)).all().item<bool>());
  // A mask depends only on key and layer, not on padded rows or other models.
  CHECK(same_bits(quarter.narrow(1, 0, 5).contiguous(), masked(0.25, 0, {key(1)}, 5)));
  const auto together = masked(0.25, 0, {key(2), key(1), key(3)}, 20);
  CHECK(same_bits(together[1], quarter[0]));
  CHECK_FALSE(same_bits(together[0], together[1]));
  CHECK_FALSE(same_bits(masked(0.25, 1, {key(1)}, 20), quarter));
  CHECK((masked(0.0, 0, {key(1)}, 5) == 1.0F).all().item<bool>());
}
