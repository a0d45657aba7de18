#include "runtime/models/layers.hpp"
#include <ATen/ATen.h> // before Catch2: both define CHECK, and the last one holds

#include "tests/support/learning.hpp"
#include <ATen/Parallel.h>
using namespace mneme;
using namespace mneme::test;

// Axes: K models, B rows, P weights.

namespace {

at::Tensor drawn(at::IntArrayRef sizes, std::uint64_t seed) {
  auto values = at::empty(sizes, at::kFloat);
  rng_stream draw({.seed = seed, .what = first_method_purpose});
  for (std::int64_t i = 0; i < values.numel(); ++i)
    values.mutable_data_ptr<float>()[i] = static_cast<float>(draw.normal());
  return values;
}

/// Features and logits as PyTorch's own layers compute them from flat weights [P].
activations reference(const model& net, const at::Tensor& flat, const at::Tensor& inputs) {
  auto x = inputs;
  const auto& layout = net.layout();
  activations result;
  for (std::size_t i = 0; i < layout.size(); i += 2) {
    const auto weight = flat.narrow(0, layout[i].offset, layout[i].size).view(layout[i].shape);
    const auto bias = flat.narrow(0, layout[i + 1].offset, layout[i + 1].size);
    if (layout[i].name.starts_with("conv")) {
      const std::int64_t padding = layout[i].name.starts_with("conv1") && x.size(2) == 28 ? 2 : 0;
      x = at::max_pool2d(at::relu(at::conv2d(x, weight, bias, 1, padding)), {2, 2});
    } else {
      x = x.flatten(1);
      if (layout[i].head)
        result.features = x;
      x = at::linear(x, weight, bias);
      if (!layout[i].head)
        x = at::relu(x);
    }
  }
  result.logits = x;
  return result;
}

struct compared {
  model_ref net;
  shape3 shape;
  class_range classes;
  bool head_only = false;
};

/// Our gradients of three models, of sum(logits * a) + sum(features * b), against autograd's.
void compare(const compared& what) {
  const std::int64_t models = 3, rows = 5, size = what.net->size();
  INFO(what.net->identity() << ", classes " << what.classes.low << " to " << what.classes.high);
  auto weights = at::empty({models, size + 3}).narrow(1, 0, size); // rows lie apart
  for (std::int64_t k = 0; k < models; ++k)
    weights.select(0, k).copy_(initial_weights(*what.net, static_cast<std::uint64_t>(k)));
  const auto inputs = drawn({models, rows, what.shape[0], what.shape[1], what.shape[2]}, 1);
  const auto d_logits = drawn({models, rows, what.classes.size()}, 2);
  const auto d_features = drawn({models, rows, what.net->feature_width()}, 3);
  tape kept;
  const auto seen = what.net->forward(weights, inputs, what.classes, &kept);
  const auto logits = seen.logits.clone(), features = seen.features.clone();
  auto gradients = at::full({models, size}, 77.0F);
  auto stepped = weights.clone();
  what.net->backward(weights, kept, what.classes, d_logits, d_features, what.head_only, {gradients});
  (void)what.net->forward(stepped, inputs, what.classes, &kept);
  what.net->backward(stepped, kept, what.classes, d_logits, d_features, what.head_only, {stepped, -0.5F, true});

  for (std::int64_t k = 0; k < models; ++k) {
    const auto flat = weights[k].detach().clone().set_requires_grad(true);
    const auto expected = reference(*what.net, flat, inputs[k]);
    const auto narrowed = expected.logits.narrow(1, what.classes.low, what.classes.size());
    CHECK(largest_difference(logits[k], narrowed.detach().contiguous()) < 2e-5);
    CHECK(largest_difference(features[k], expected.features.detach().contiguous()) < 2e-5);
    ((narrowed * d_logits[k]).sum() + (expected.features * d_features[k]).sum()).backward();
    for (const auto& piece : trained_segments(*what.net, what.classes, what.head_only)) {
      const auto ours = gradients[k].narrow(0, piece.offset, piece.size);
      const auto theirs = flat.grad().narrow(0, piece.offset, piece.size);
      CHECK(largest_difference(ours, theirs) < 1e-4 * std::max(1.0F, theirs.abs().max().item<float>()));
      const auto step = weights[k].narrow(0, piece.offset, piece.size) - 0.5 * ours;
      CHECK(largest_difference(stepped[k].narrow(0, piece.offset, piece.size), step) < 1e-5);
    }
    // What the loss does not cover is not written.
    auto untouched = at::ones({size}, at::kBool);
    for (const auto& piece : trained_segments(*what.net, what.classes, what.head_only))
      untouched.narrow(0, piece.offset, piece.size).fill_(false);
    CHECK((gradients[k].masked_select(untouched) == 77.0F).all().item<bool>());
    CHECK((stepped[k] == weights[k]).masked_select(untouched).all().item<bool>());
  }
}

} // namespace

TEST_CASE("gradients of every model equal autograd's", "[models]") {
  at::set_num_threads(1);
  compare({net_of("linear", {1, 1, 17}, 10), {1, 1, 17}, {0, 10}});
  compare({mlp_of({9, 7}, 13, 10), {1, 1, 13}, {0, 10}});
  compare({mlp_of({33}, 64, 10), {1, 1, 64}, {4, 6}});
  compare({mlp_of({33}, 64, 10), {1, 1, 64}, {0, 6}, true});
  compare({net_of("lenet", {1, 28, 28}, 10), {1, 28, 28}, {0, 10}});
  compare({net_of("lenet", {3, 32, 32}, 10), {3, 32, 32}, {2, 8}});
  compare({net_of("lenet", {1, 16, 19}, 4), {1, 16, 19}, {0, 4}});
}

TEST_CASE("gradients of every kind of layer equal finite differences", "[models]") {
  const auto net = net_of("lenet", {2, 17, 16}, 3);
  const auto weights = initial_weights(*net, 5).unsqueeze(0); // [1, P]
  const auto inputs = drawn({1, 4, 2, 17, 16}, 1), d_logits = drawn({1, 4, 3}, 2);
  tape kept;
  (void)net->forward(weights, inputs, {0, 3}, &kept);
  auto gradients = at::zeros({1, net->size()});
  net->backward(weights, kept, {0, 3}, d_logits, {}, false, {gradients});
  const auto value = [&](std::int64_t i, float change) {
    auto moved = weights.clone();
    moved.mutable_data_ptr<float>()[i] += change;
    return (net->forward(moved, inputs, {0, 3}, nullptr).logits.to(at::kDouble) * d_logits).sum().item<double>();
  };
  for (const auto& one : net->layout()) // the middle element of every parameter
    for (const auto i : {one.offset + one.size / 2}) {
      const float change = 1e-3F;
      const double difference = (value(i, change) - value(i, -change)) / (2.0 * change);
      INFO(one.name);
      CHECK(std::abs(gradients.const_data_ptr<float>()[i] - difference) < 2e-2 * std::max(1.0, std::abs(difference)));
    }
}

TEST_CASE("kernels of layers equal their composites", "[models]") {
  const std::int64_t models = 2, rows = 3;
  const conv_layer conv({.channels = 3,
                         .height = 9,
                         .width = 11,
                         .filters = 5,
                         .kernel = 3,
                         .padding = 1,
                         .weight_offset = 4,
                         .bias_offset = 200,
                         .after = activation::relu});
  const linear_layer linear({.in = 297, .out = 10, .weight_offset = 4, .bias_offset = 3000, .head = true});
  const max_pool_layer pool({.channels = 3, .height = 9, .width = 11});
  const auto weights = drawn({models, 3100}, 1), in = drawn({models, rows, 297}, 2);
  const layer_pass of{weights, models, rows, {2, 9}};
  const auto check = [&](const auto& layer, const auto& backward_twin) {
    const auto sizes = std::vector<std::int64_t>{models, rows, layer.width(of.classes)};
    auto out = at::empty(sizes), twin_out = at::empty(sizes), d_in = at::empty_like(in), twin_d_in = at::empty_like(in);
    auto gradients = at::ones_like(weights), twin_gradients = at::ones_like(weights);
    at::Tensor kept;
    layer.forward(of, in, out, kept);
    layer.composite_forward(of, in, twin_out);
    CHECK(largest_difference(out, twin_out) < 1e-4);
    auto d_out = drawn(sizes, 3), twin_d_out = d_out.clone();
    layer.backward(of, {in, out, kept, d_out, &d_in}, {gradients, 0.25F, true});
    backward_twin({in, twin_out, kept, twin_d_out, &twin_d_in}, {twin_gradients, 0.25F, true});
    CHECK(largest_difference(d_in, twin_d_in) < 1e-4);
    CHECK(largest_difference(gradients, twin_gradients) < 1e-3);
  };
  using data = layer::backward_data;
  check(conv, [&](const data& of_pass, const gradient_sink& sink) { conv.composite_backward(of, of_pass, sink); });
  check(linear, [&](const data& of_pass, const gradient_sink& sink) { linear.composite_backward(of, of_pass, sink); });
  check(pool, [&](const data& of_pass, const gradient_sink&) { pool.composite_backward(of, of_pass); });
}

TEST_CASE("weights shared by all models give the same bits as their copies", "[models]") {
  for (const auto& [net, shape] : {std::pair{mlp_of({20}, 40, 6), shape3{1, 1, 40}},
                                   std::pair{net_of("lenet", {1, 28, 28}, 6), shape3{1, 28, 28}}}) {
    const auto weights = initial_weights(*net, 1).unsqueeze(0); // [1, P]
    const auto inputs = drawn({3, 4, shape[0], shape[1], shape[2]}, 2);
    const auto shared = net->forward(weights, inputs, {0, 6}, nullptr);
    const auto copied = net->forward(weights.expand({3, net->size()}).contiguous(), inputs, {0, 6}, nullptr);
    CHECK(same_bits(shared.logits, copied.logits));
    CHECK(same_bits(shared.features, copied.features));
  }
}
