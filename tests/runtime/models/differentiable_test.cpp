// Nets as differentiable functions, compared with the kernel passes and with finite differences.
#include "runtime/models/network.hpp"
#include <ATen/ATen.h> // before Catch2, whose CHECK must be the last definition
#include <ATen/Parallel.h>
#include <torch/csrc/autograd/autograd.h>

#include "tests/support/nets.hpp"
using namespace mneme;
using namespace mneme::test;

// Axes: K models, B rows, P weights.

namespace {

struct subject {
  std::string name;
  shape3 shape;
  model_keys keys{};
  head_kind head = head_kind::linear;
  double bound = 1e-6; ///< relative; the float32 rounding error grows with the number of layers
};

/// Every registered model, with keys that change its computations.
std::vector<subject> subjects() {
  const shape3 small{3, 9, 10}, smaller{3, 5, 6}; // few values in deep nets, so that rounding switches no ReLU
  const model_keys tokens{{"patch", "4"}, {"width", "12"}, {"depth", "2"}, {"heads", "3"}};
  auto adapted = tokens, resized = tokens, low_rank = tokens;
  adapted.insert(adapted.end(), {{"adapter", "5"}});
  resized.insert(resized.end(), {{"image", "12"}});
  low_rank.insert(low_rank.end(), {{"low_rank", "2"}});
  return {
      {"cnn", {3, 8, 7}},
      {"ebr", {1, 28, 28}},
      {"vee", {1, 28, 28}},
      {"identity", small},
      {"lenet", {2, 16, 19}},
      {"layers",
       {3, 8, 8},
       {{"layers", "conv 4 3x3, relu, residual [, conv 6 3x3 pad 1 stride 2, tanh, ] shortcut [, subsample 2 6, ], "
                   "dropout 0.3, flatten, batch-norm, linear classes"}},
       head_kind::linear,
       4e-6},
      {"layers", {1, 1, 9}, {{"layers", "linear 5, relu, residual [, layer-norm, linear 5, gelu, ], linear classes"}}},
      {"linear", small},
      {"mlp", small},
      {"mlp", small, {}, head_kind::cosine},
      {"mlp", small, {}, head_kind::proxies},
      {"mlp", small, {{"activation", "leaky"}}, head_kind::none},
      {"lenet", {2, 16, 19}, {{"activation", "sigmoid"}}},
      {"lenet", {2, 16, 19}, {{"activation", "tanh"}}},
      {"cnn", {3, 8, 7}, {{"activation", "silu"}}},
      {"resnet50", small, {{"width", "4"}, {"norm", "group"}}, head_kind::linear, 4e-5},
      {"resnet18", small, {{"width", "8"}}, head_kind::linear, 4e-6},
      {"resnet18",
       {3, 33, 33},
       {{"width", "8"}, {"groups", "4"}, {"stem", "imagenet"}, {"norm", "group"}},
       head_kind::linear,
       4e-6},
      {.name = "resnet32", .shape = smaller, .bound = 4e-6},
      {"resnet8", small, {{"shortcut", "conv1x1"}}},
      {"resnet8", small, {{"norm", "group"}, {"groups", "4"}}},
      {"resnet8", small, {{"last_relu", "off"}}},
      {"vit", {3, 8, 8}, tokens},
      {"vit", {3, 8, 8}, adapted},
      {"vit", {3, 8, 8}, low_rank},
      {"clip", {3, 8, 8}, tokens},
      {"vit", {3, 8, 8}, resized}};
}

model_ref net_for(const subject& chosen) {
  auto kind = kind_with(chosen.name, chosen.keys);
  kind->set_head(chosen.head);
  return kind->build(chosen.shape, 4).value();
}

/// Weights [K, P]; running statistics and zero-initialized adapters are changed from their initial values.
at::Tensor weights_for(const model& net, std::int64_t models) {
  std::vector<at::Tensor> rows;
  for (std::int64_t k = 0; k < models; ++k)
    rows.push_back(initial_weights(net, static_cast<std::uint64_t>(k)) +
                   0.01 * drawn({net.size()}, static_cast<std::uint64_t>(100 + k)).abs());
  return at::stack(rows);
}

std::vector<rng_key> streams_of(std::int64_t models) {
  std::vector<rng_key> keys;
  for (std::int64_t k = 0; k < models; ++k)
    keys.push_back({.seed = 4, .client = {static_cast<std::uint32_t>(k)}, .index = 3});
  return keys;
}

at::Tensor inputs_for(const subject& chosen, std::int64_t models, std::int64_t rows) {
  return drawn({models, rows, chosen.shape[0], chosen.shape[1], chosen.shape[2]}, 1);
}

at::Tensor gradient_of(const at::Tensor& value, const at::Tensor& by, bool again = false) {
  return torch::autograd::grad({value}, {by}, {}, true, again)[0];
}

void check_near(const at::Tensor& ours, const at::Tensor& theirs, double bound) {
  const auto whole = theirs.to(at::kDouble), beside = ours.to(at::kDouble) - whole;
  CHECK(beside.norm().item<double>() <= bound * std::max(whole.norm().item<double>(), 1e-3));
}

constexpr class_range some{1, 4};

/// Returns sum(logits * a) + sum(features * b).
at::Tensor loss_of(const function_results& seen) {
  auto loss = (seen.features * drawn(seen.features.sizes(), 3).to(seen.features.options())).sum();
  if (seen.logits.defined())
    loss = loss + (seen.logits * drawn(seen.logits.sizes(), 2).to(seen.logits.options())).sum();
  return loss;
}

/// Compares every model of a stack with the model alone and in other stacks: results, gradients and second derivatives.
void check_bits(const model& net, const at::Tensor& inputs) {
  const auto most = inputs.size(0);
  const auto classes = net.classes() > 0 ? some : class_range{};
  const auto weights = weights_for(net, most);
  const auto streams = streams_of(most);
  const auto results = [&](std::int64_t first, std::int64_t count) {
    const auto own = weights.narrow(0, first, count).clone().set_requires_grad(true);
    const auto images = inputs.narrow(0, first, count).clone().set_requires_grad(true);
    const training_mode mode{
        std::span(streams).subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count))};
    const auto seen = net.differentiable(own, images, classes, {.training = &mode, .statistics = true});
    const auto loss =
        (seen.features.square().sum() + (seen.logits.defined() ? seen.logits.square().sum() : seen.features.sum()));
    std::vector<at::Tensor> parts{seen.features.detach()};
    if (net.size() == 0)
      return parts;
    const auto slope = gradient_of(loss, own, true);
    parts.push_back(slope.detach());
    parts.push_back(torch::autograd::grad({slope.square().sum()}, {images})[0]);
    for (const auto& layer : seen.statistics)
      parts.push_back(layer.variance.detach());
    return parts;
  };
  const auto together = results(0, most);
  for (const std::int64_t k : {1, 6}) {
    const auto alone = results(k, 1), some_of_them = results(k > 2 ? k - 2 : k, 3 > most - k ? most - k + 2 : 3);
    for (std::size_t part = 0; part < alone.size(); ++part) {
      INFO("model " << k << ", result " << part);
      CHECK(same_bits(alone[part][0].contiguous(), together[part][k].contiguous()));
      CHECK(same_bits(alone[part][0].contiguous(), some_of_them[part][k > 2 ? 2 : 0].contiguous()));
    }
  }
}

} // namespace

TEST_CASE("every registered model is tested as a function", "[models]") {
  auto tried = subjects();
  // These have the same blocks as resnet50, or are tested by lstm_test.cpp, bert_test.cpp and efficientnet_test.cpp.
  for (const auto* const name : {"resnet152", "lstm", "bert", "efficientnet-lite0"})
    tried.push_back({.name = name});
  for (const auto& entry : models())
    CHECK(std::any_of(tried.begin(), tried.end(), [&](const subject& chosen) { return chosen.name == entry.name; }));
}

TEST_CASE("functions and their gradients equal the kernel passes", "[models]") {
  at::set_num_threads(1);
  const std::int64_t nets = 2, rows = 3;
  const auto streams = streams_of(nets);
  const training_mode training{streams};
  for (const auto& chosen : subjects())
    for (const auto* const mode : {static_cast<const training_mode*>(nullptr), &training}) {
      const auto net = net_for(chosen);
      INFO(net->identity() << ", training " << (mode != nullptr));
      const auto classes = net->classes() > 0 ? some : class_range{};
      const auto inputs = inputs_for(chosen, nets, rows);
      const auto start = weights_for(*net, nets);
      auto weights = start.clone();
      const auto followed = start.clone().set_requires_grad(true);
      const auto seen = net->differentiable(followed, inputs, classes, {.training = mode, .statistics = true});
      CHECK(same_bits(followed.detach(), start));

      tape kept;
      kept.for_backward = net->classes() > 0;
      const auto by_hand = net->forward(weights, inputs, classes, &kept, mode);
      check_near(seen.features.detach(), by_hand.features, chosen.bound);
      if (!seen.logits.defined())
        continue;
      check_near(seen.logits.detach(), by_hand.logits, chosen.bound);
      check_near(with_updated_running_stats(start, seen.statistics), weights, chosen.bound);

      auto gradients = at::zeros_like(start);
      net->backward(weights, kept, classes, drawn(seen.logits.sizes(), 2), drawn(seen.features.sizes(), 3), {},
                    {gradients});
      const auto theirs = gradient_of(loss_of(seen), followed);
      for (const auto& piece : trained_segments(*net, classes))
        check_near(theirs.narrow(1, piece.offset, piece.size), gradients.narrow(1, piece.offset, piece.size),
                   chosen.bound);
    }
}

TEST_CASE("first and second derivatives of functions equal finite differences in float64", "[models]") {
  at::set_num_threads(1);
  const auto streams = streams_of(1);
  const training_mode training{streams};
  for (const auto& chosen : subjects())
    for (const auto* const mode : {static_cast<const training_mode*>(nullptr), &training}) {
      const auto net = net_for(chosen);
      INFO(net->identity() << ", training " << (mode != nullptr));
      const auto classes = net->classes() > 0 ? some : class_range{};
      const auto start = weights_for(*net, 1).to(at::kDouble);
      const auto images = inputs_for(chosen, 1, 3).to(at::kDouble);
      const auto direction = drawn(images.sizes(), 7).to(at::kDouble);
      const auto mixed = drawn(start.sizes(), 8).to(at::kDouble) / std::sqrt(static_cast<double>(net->size() + 1));
      struct slopes {
        double value = 0.0, by_inputs = 0.0, squared = 0.0, again = 0.0;
      };
      // The loss at images + step * direction, its derivative at that point, v = |its weight gradient, projected on
      // `mixed`|^2, and the derivative of v.
      const auto at_step = [&](double step) {
        const auto weights = start.clone().set_requires_grad(true);
        const auto inputs = (images + step * direction).set_requires_grad(true);
        const auto loss = loss_of(net->differentiable(weights, inputs, classes, {.training = mode}));
        slopes found{.value = loss.item<double>()};
        found.by_inputs = (gradient_of(loss, inputs, true) * direction).sum().item<double>();
        if (net->size() == 0)
          return found;
        const auto squared = (gradient_of(loss, weights, true) * mixed).sum().square();
        found.squared = squared.item<double>();
        const auto slope = torch::autograd::grad({squared}, {inputs}, {}, {}, false, true)[0];
        found.again = slope.defined() ? (slope * direction).sum().item<double>() : 0.0;
        return found;
      };
      const double step = 1e-6;
      const auto here = at_step(0.0), before = at_step(-step), next = at_step(step);
      const auto near = [](double ours, double difference) {
        CHECK(std::abs(ours - difference) < 1e-5 * std::max(1.0, std::abs(difference)));
      };
      near(here.by_inputs, (next.value - before.value) / (2.0 * step));
      near(here.again, (next.squared - before.squared) / (2.0 * step));
    }
}

TEST_CASE("the bits of a model as a function do not depend on the stack or its index in it", "[models]") {
  at::set_num_threads(1);
  const std::int64_t most = 7;
  for (const auto& chosen : subjects()) {
    if (chosen.name == "resnet18" || chosen.name == "resnet32" || chosen.name == "ebr")
      continue; // has the same layers as smaller nets
    const auto net = net_for(chosen);
    for (const std::int64_t rows : {3, 1}) {
      INFO(net->identity() << ", rows " << rows);
      check_bits(*net, inputs_for(chosen, most, rows));
    }
  }
}

TEST_CASE("maps and statistics of a residual net are those of its stages and normalizations", "[models]") {
  const auto net = net_of("resnet8", {3, 8, 8}, 4);
  CHECK(net->maps() == std::vector<std::string>{"stem", "layer1", "layer2", "layer3"});
  const auto weights = weights_for(*net, 1), inputs = drawn({1, 5, 3, 8, 8}, 1);
  const auto seen = net->differentiable(weights, inputs, {0, 4}, {.statistics = true});
  REQUIRE(seen.maps.size() == 4);
  CHECK(seen.maps[0].values.sizes() == at::IntArrayRef{1, 5, 16, 8, 8});
  CHECK(seen.maps[3].name == "layer3");
  CHECK(seen.maps[3].values.sizes() == at::IntArrayRef{1, 5, 64, 2, 2});
  CHECK(largest_difference(seen.maps[3].values.mean({3, 4}).contiguous(), seen.features.contiguous()) < 1e-6);

  REQUIRE(seen.statistics.size() == 7);
  CHECK(seen.statistics[0].name == "bn1");
  CHECK(seen.statistics[6].name == "layer3.0.bn2");
  CHECK(seen.statistics[0].values == 5 * 64);
  const auto named = [&](const std::string& name) {
    for (const auto& parameter : net->layout())
      if (parameter.name == name)
        return as_in_files(weights[0], parameter);
    FAIL(name);
    return at::Tensor{};
  };
  const auto before = at::conv2d(inputs[0], named("conv1.weight"), {}, 1, 1);
  CHECK(largest_difference(seen.statistics[0].mean[0].contiguous(), before.mean({0, 2, 3})) < 1e-5);
  CHECK(largest_difference(seen.statistics[0].variance[0].contiguous(),
                           before.var(at::IntArrayRef{0, 2, 3}, false).contiguous()) < 1e-4);
  CHECK(same_bits(seen.statistics[0].running_variance[0].contiguous(), named("bn1.running_var")));
  CHECK(net->differentiable(weights, inputs, {0, 4}, {}).statistics.empty());
}

TEST_CASE("running statistics are updated only in layers that are trained", "[models]") {
  const auto net = net_of("resnet8", {3, 8, 8}, 4);
  const auto start = weights_for(*net, 2), inputs = drawn({2, 5, 3, 8, 8}, 1);
  for (const auto& layers : {std::vector<std::string>{"layer3", "fc"}, {"bn1"}, {"fc"}}) {
    const auto trained = parameter_choice::layers_of(*net, layers);
    const training_mode mode{.trained = &trained};
    auto by_hand = start.clone();
    (void)net->forward(by_hand, inputs, {0, 4}, nullptr, &mode);
    const auto seen = net->differentiable(start, inputs, {0, 4}, {.training = &mode, .statistics = true});
    REQUIRE(seen.statistics.size() == 7);
    const auto moved = with_updated_running_stats(start, seen.statistics);
    check_near(moved, by_hand, 1e-6);
    for (const auto& entry : net->layout())
      CHECK(same_bits(moved.narrow(1, entry.offset, entry.size).contiguous(),
                      start.narrow(1, entry.offset, entry.size).contiguous()) ==
            !(entry.buffer && entry.name.starts_with(layers[0])));
  }
}

TEST_CASE("weights shared by a stack get the sum of its gradients", "[models]") {
  const auto net = net_of("lenet", {1, 16, 16}, 4);
  const auto inputs = drawn({3, 2, 1, 16, 16}, 1);
  const auto shared = weights_for(*net, 1).set_requires_grad(true);
  const auto copies = shared.detach().expand({3, net->size()}).clone().set_requires_grad(true);
  const auto slopes = [&](const at::Tensor& weights) {
    return gradient_of(loss_of(net->differentiable(weights, inputs, some, {})), weights);
  };
  check_near(slopes(shared)[0], slopes(copies).sum(0), 1e-6);
}
