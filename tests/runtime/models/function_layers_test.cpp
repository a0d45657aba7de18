#include "runtime/models/layers.hpp"
#include <ATen/ATen.h> // before Catch2, whose CHECK must be the last definition

#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <functional>
#include <map>
using namespace mneme;

// Axes: K models, B rows, P weights.

namespace {

constexpr std::int64_t classes = 3, tokens = 7;

using weights_by_name = std::map<std::string, at::Tensor>;

/// Layers of a net before its head, and the same function by LibTorch's operators.
struct tried_layers {
  std::vector<std::string> layers;
  std::array<std::int64_t, 3> shape; ///< C, H, W
  std::function<at::Tensor(const weights_by_name&, const at::Tensor&)> features;
  bool reads_tokens = false;
};

at::Tensor spread(at::IntArrayRef sizes, double offset) {
  return at::arange(c10::multiply_integers(sizes), at::kDouble).mul(0.73).add(offset).sin().to(at::kFloat).view(sizes);
}

std::vector<tried_layers> all_tried() {
  const auto flat = [](const at::Tensor& x) { return x.flatten(1); };
  const auto of_values = [](const std::string& text, at::Tensor (*apply)(const at::Tensor&)) {
    return tried_layers{{text}, {1, 1, 12}, [apply](const auto&, const at::Tensor& x) { return apply(x.flatten(1)); }};
  };
  std::vector<tried_layers> all{
      {{"a: conv 6 3x3 stride 2 pad 1 groups 2", "relu", "flatten"},
       {4, 7, 7},
       [=](const auto& w, const at::Tensor& x) {
         return flat(at::relu(at::conv2d(x, w.at("a.weight"), w.at("a.bias"), 2, 1, 1, 2)));
       }},
      {{"a: conv 4 3x3 pad 2 dilation 2 no-bias", "flatten"},
       {2, 6, 6},
       [=](const auto& w, const at::Tensor& x) { return flat(at::conv2d(x, w.at("a.weight"), {}, 1, 2, 2)); }},
      {{"avg-pool 3 stride 2 pad 1", "flatten"},
       {2, 7, 7},
       [=](const auto&, const at::Tensor& x) { return flat(at::avg_pool2d(x, 3, 2, 1)); }},
      {{"adaptive-avg-pool 3", "flatten"},
       {2, 6, 6},
       [=](const auto&, const at::Tensor& x) {
         return flat(at::adaptive_avg_pool2d(x, {3, 3}));
       }},
      {{"e: embedding 4 tokens 9", "p: positions", "n: rms-norm 1e-06", "mean-tokens"},
       {1, 1, 5},
       [](const auto& w, const at::Tensor& x) {
         const auto embedded = at::embedding(w.at("e.weight"), x.flatten(1).to(at::kLong)) + w.at("p");
         return at::rms_norm(embedded, {4}, w.at("n.weight"), 1e-6).mean(1);
       },
       true},
      {{"e: embedding 4", "r: lstm 3 layers 2", "last-token"},
       {1, 1, 5},
       [](const auto& w, const at::Tensor& x) {
         std::vector<at::Tensor> parameters;
         for (const auto* const layer : {"_l0", "_l1"})
           for (const auto* const part : {"r.weight_ih", "r.weight_hh", "r.bias_ih", "r.bias_hh"})
             parameters.push_back(w.at(std::string(part) + layer));
         const auto zeros = at::zeros({2, x.size(0), 3});
         const auto embedded = at::embedding(w.at("e.weight"), x.flatten(1).to(at::kLong));
         return std::get<0>(at::lstm(embedded, {zeros, zeros}, parameters, true, 2, 0.0, false, false, true))
             .select(1, -1);
       },
       true},
      of_values("relu6", [](const at::Tensor& x) { return at::relu6(x); }),
      of_values("hardswish", [](const at::Tensor& x) { return at::hardswish(x); }),
      of_values("hardsigmoid", [](const at::Tensor& x) { return at::hardsigmoid(x); }),
      of_values("mish", [](const at::Tensor& x) { return at::mish(x); }),
      of_values("softplus", [](const at::Tensor& x) { return at::softplus(x); }),
      of_values("elu 0.5", [](const at::Tensor& x) { return at::elu(x, 0.5); }),
      of_values("gelu-tanh", [](const at::Tensor& x) { return at::gelu(x, "tanh"); }),
  };
  return all;
}

model_ref built(const tried_layers& tried) {
  auto layers = tried.layers;
  layers.push_back("h: linear classes");
  const auto net =
      build_layers(layers, {.shape = tried.shape, .classes = classes, .tokens = tried.reads_tokens ? tokens : 0});
  if (!net)
    FAIL(net.error());
  return *net;
}

/// [K, B, C, H, W]
at::Tensor rows_of(const tried_layers& tried, std::int64_t models, std::int64_t rows) {
  const auto [channels, height, width] = tried.shape;
  const auto numbers = models * rows * channels * height * width;
  const auto values = tried.reads_tokens ? at::arange(numbers, at::kLong).mul(5).remainder(tokens).to(at::kFloat)
                      : height == 1      ? spread({numbers}, 0.2).mul(6.0)
                                         : spread({numbers}, 0.2);
  return values.view({models, rows, channels, height, width});
}

struct job_guards {
  at::NoGradGuard no_gradients{};
  at::AutoDispatchBelowADInplaceOrView no_tracking{};
};

} // namespace

TEST_CASE("layers of LibTorch's operators equal PyTorch's layers, whatever the number of models", "[models]") {
  for (const auto& tried : all_tried()) {
    INFO(tried.layers[0]);
    const auto net = built(tried);
    const auto inputs = rows_of(tried, 3, 4);
    const auto weights = spread({3, net->size()}, 0.5);
    const job_guards guards;
    const auto all = net->forward(weights, inputs, {0, classes}, nullptr, nullptr).logits;
    for (std::int64_t k = 0; k < 3; ++k) {
      weights_by_name named;
      for (const auto& entry : net->layout())
        named[entry.name] = as_in_files(weights[k], entry).contiguous();
      const auto features = tried.features(named, inputs[k]);
      CHECK(at::allclose(all[k], at::linear(features, named.at("h.weight"), named.at("h.bias")), 1e-4, 1e-5));
      const auto alone =
          net->forward(weights.narrow(0, k, 1), inputs.narrow(0, k, 1), {0, classes}, nullptr, nullptr).logits;
      CHECK(at::equal(alone[0], all[k]));
    }
  }
}

TEST_CASE("layers of LibTorch's operators train with gradients of finite differences", "[models]") {
  for (const auto& tried : all_tried()) {
    INFO(tried.layers[0]);
    const auto net = built(tried);
    const auto inputs = rows_of(tried, 1, 4);
    const auto weights = spread({1, net->size()}, 0.5), slope = spread({1, 4, classes}, 0.9);
    const job_guards guards;
    const training_mode training;
    tape kept;
    static_cast<void>(net->forward(weights, inputs, {0, classes}, &kept, &training));
    auto into = at::zeros_like(weights);
    net->backward(weights, kept, {0, classes}, slope, {}, {}, {into, 1.0F});
    const auto direction = spread(weights.sizes(), 0.3);
    const auto loss = [&](double step) {
      return (net->forward(weights + step * direction, inputs, {0, classes}, nullptr, nullptr).logits * slope)
          .sum(at::kDouble)
          .item<double>();
    };
    const double expected = (loss(1e-3) - loss(-1e-3)) / 2e-3,
                 found = (into * direction).sum(at::kDouble).item<double>();
    CHECK(std::abs(found - expected) < 2e-2 * std::max(1.0, std::abs(expected)));
  }
}

TEST_CASE("layers that do not fit are refused with their place", "[models]") {
  const auto error_of = [](std::vector<std::string> layers, std::array<std::int64_t, 3> shape, std::int64_t words = 0) {
    const auto net = build_layers(layers, {.shape = shape, .classes = classes, .tokens = words});
    return net ? std::string() : net.error();
  };
  const auto has = [](const std::string& text, const char* part) { return text.find(part) != std::string::npos; };
  CHECK(has(error_of({"conv 6 3x3 groups 4", "flatten", "linear classes"}, {4, 8, 8}),
            "model.layers[0] = \"conv 6 3x3 groups 4\": 4 channels and 6 filters do not divide into 4 groups"));
  CHECK(has(error_of({"adaptive-avg-pool 3", "flatten", "linear classes"}, {1, 8, 8}), "a multiple of 3"));
  CHECK(has(error_of({"avg-pool 9", "flatten", "linear classes"}, {1, 8, 8}), "does not fit"));
  CHECK(has(error_of({"embedding 4 tokens 5", "mean-tokens", "linear classes"}, {1, 1, 6}, 7),
            "the data have 7 distinct tokens"));
  CHECK(has(error_of({"mean-tokens", "linear classes"}, {1, 1, 6}), "expected tokens"));
  CHECK(has(error_of({"elu -1", "linear classes"}, {1, 1, 6}), "a number from 0 to 100"));
}

TEST_CASE("given parameters have their names and values in the net", "[models]") {
  const auto value = spread({3, 6}, 0.1);
  const auto net = build_layers({"h: linear classes"},
                                {.shape = {1, 1, 6}, .classes = 3, .given = {{"h.weight", {"theirs.w", value}}}});
  REQUIRE(net);
  CHECK((*net)->layout()[0].name == "theirs.w");
  CHECK(at::equal(as_in_files(initial_weights(**net, 4), (*net)->layout()[0]), value));
  const auto wrong = build_layers({"h: linear classes"},
                                  {.shape = {1, 1, 5}, .classes = 3, .given = {{"h.weight", {"theirs.w", value}}}});
  REQUIRE_FALSE(wrong);
  CHECK(wrong.error() == "the parameter 'theirs.w' has the shape [3, 6]; expected [3, 5]");
}
