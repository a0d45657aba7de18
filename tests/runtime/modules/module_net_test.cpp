#include "runtime/modules/load_module.hpp"
#include "runtime/modules/module_net.hpp"
#include "tests/support/fake_device.hpp"
#include "tests/support/formula.hpp"
#include "tests/support/module_files.hpp"
#include <ATen/ATen.h>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <fstream>
#include <torch/csrc/autograd/autograd.h>
using namespace mneme;
using namespace mneme::test;

namespace {

constexpr std::array<std::int64_t, 3> image{1, 6, 6};
constexpr std::int64_t classes = 5;

std::shared_ptr<const module_net> loaded(const made_program& made, module_requirements wanted = {}) {
  const scratch_folder folder;
  write_module(folder.path() / "net.pt2", made);
  wanted.input = image;
  wanted.classes = classes;
  wanted.guards.sandbox = false;
  auto net = load_module(folder.path() / "net.pt2", wanted);
  if (!net)
    FAIL(diagnostic_text(net.error().front()));
  return *net;
}

at::Tensor start_of(const module_net& net) {
  auto flat = initial_weights(net, 1);
  net.put_own_values(flat);
  return flat;
}

/// Features of small_convolution() by ATen alone, from its weights in double.
at::Tensor expected_features(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  const auto mean = at::full({1, 4, 1, 1}, 0.1F).to(x.scalar_type());
  return at::flatten(at::avg_pool2d(at::relu(at::conv2d(x, weight, bias, 1, 1) - mean), {2, 2}), 1);
}

double difference(const at::Tensor& found, const at::Tensor& expected) {
  return (found.to(at::kDouble) - expected.to(at::kDouble)).abs().max().item<double>();
}

const parameter& parameter_called(const model& net, const std::string& name) {
  for (const auto& entry : net.layout())
    if (entry.name == name)
      return entry;
  FAIL("no parameter is called " << name);
  return net.layout().front();
}

/// Autograd modes in which the executor computes a pass.
struct job_guards {
  at::NoGradGuard no_gradients{};
  at::AutoDispatchBelowADInplaceOrView no_tracking{};
};

} // namespace

TEST_CASE("a module's weights have their own names, followed by a head") {
  const auto net = loaded(small_convolution());
  std::vector<std::string> names;
  for (const auto& entry : net->layout())
    names.push_back(entry.name + (entry.frozen ? " frozen" : "") + (entry.head ? " head" : ""));
  CHECK(names == std::vector<std::string>{"weight", "bias", "mean frozen", "head.weight head", "head.bias head"});
  CHECK(net->size() == 36 + 4 + 4 + 5 * 36 + 5);
  CHECK(net->feature_width() == 36);
  CHECK(net->classes() == 5);
  const auto flat = start_of(*net);
  CHECK(at::equal(as_in_files(flat, parameter_called(*net, "weight")), spread_numbers({4, 1, 3, 3})));
  CHECK(as_in_files(flat, parameter_called(*net, "head.weight")).abs().max().item<float>() <= 1.0F / 6);
}

TEST_CASE("features and logits equal those of the net in ATen") {
  const job_guards guards;
  const auto kind = GENERATE(head_kind::linear, head_kind::cosine);
  const auto net = loaded(small_convolution(), {.head = kind});
  const auto flat = start_of(*net);
  const auto x = spread_numbers({2, 21, 1, 6, 6}, 3.0);
  const auto found = as_model(net).forward(flat.unsqueeze(0), x, {1, 4}, nullptr);
  REQUIRE(found.features.sizes() == at::IntArrayRef({2, 21, 36}));
  REQUIRE(found.logits.sizes() == at::IntArrayRef({2, 21, 3}));
  const auto expected = expected_features(x.flatten(0, 1).to(at::kDouble), spread_numbers({4, 1, 3, 3}).to(at::kDouble),
                                          spread_numbers({4}).to(at::kDouble));
  CHECK(difference(found.features.flatten(0, 1), expected) < 1e-6);
  const auto w = as_in_files(flat, parameter_called(*net, "head.weight")).narrow(0, 1, 3).to(at::kDouble);
  const auto cosines = at::mm(expected / expected.norm(2, {1}, true), (w / w.norm(2, {1}, true)).t());
  const auto scores = kind == head_kind::cosine
                          ? cosines // times sigma, which is 1 at first
                          : at::mm(expected, w.t()) + as_in_files(flat, net->layout().back()).narrow(0, 1, 3);
  CHECK(difference(found.logits.flatten(0, 1), scores) < 1e-6);
}

TEST_CASE("gradients equal autograd's through the same net, for every model of a group") {
  const auto net = loaded(small_convolution());
  auto weights = at::stack({start_of(*net), start_of(*net) * 1.5}); // [K, P]
  const auto x = spread_numbers({2, 7, 1, 6, 6}, 3.0);
  const auto d_logits = spread_numbers({2, 7, 3}), d_features = spread_numbers({2, 7, 36}, 0.3);
  const auto into = at::full_like(weights, 9.0F);
  tape kept;
  {
    const job_guards guards;
    const training_mode training;
    const auto seen = as_model(net).forward(weights, x, {1, 4}, &kept, &training);
    CHECK_FALSE(seen.logits.requires_grad());
    auto sink = into;
    net->backward(weights, kept, {1, 4}, d_logits, d_features, {}, {sink, 2.0F});
  }
  for (std::int64_t k = 0; k < 2; ++k) {
    CAPTURE(k);
    std::vector<at::Tensor> leaves;
    for (const auto* const name : {"weight", "bias", "head.weight", "head.bias"})
      leaves.push_back(
          as_in_files(weights[k], parameter_called(*net, name)).to(at::kDouble).clone().requires_grad_(true));
    auto mean = as_in_files(weights[k], parameter_called(*net, "mean")).to(at::kDouble);
    const auto maps = at::relu(at::conv2d(x[k].to(at::kDouble), leaves[0], leaves[1], 1, 1) - mean);
    const auto features = at::flatten(at::avg_pool2d(maps, {2, 2}), 1);
    const auto logits = at::linear(features, leaves[2].narrow(0, 1, 3), leaves[3].narrow(0, 1, 3));
    const auto loss = (logits * d_logits[k]).sum() + (features * d_features[k]).sum();
    const auto expected = torch::autograd::grad({loss}, leaves);
    const auto found = [&](const char* name) { return as_in_files(into[k], parameter_called(*net, name)); };
    CHECK(difference(found("weight"), 2 * expected[0]) < 1e-5);
    CHECK(difference(found("bias"), 2 * expected[1]) < 1e-5);
    CHECK(difference(found("head.weight").narrow(0, 1, 3), 2 * expected[2].narrow(0, 1, 3)) < 1e-5);
    CHECK(difference(found("head.bias").narrow(0, 1, 3), 2 * expected[3].narrow(0, 1, 3)) < 1e-5);
    CHECK(at::all(found("mean") == 9.0F).item<bool>());
    CHECK(at::all(found("head.weight").narrow(0, 4, 1) == 9.0F).item<bool>()); // a class outside the loss
    CHECK(at::all(found("head.bias").narrow(0, 0, 1) == 9.0F).item<bool>());
  }
}

TEST_CASE("as a function the net has the same values, and gradients of its inputs") {
  const auto net = loaded(small_convolution());
  const auto weights = start_of(*net).unsqueeze(0);
  const auto x = spread_numbers({1, 3, 1, 6, 6}, 3.0).requires_grad_(true);
  const auto found = net->differentiable(weights, x, {1, 4}, {});
  const auto expected = as_model(net).forward(weights, x.detach(), {1, 4}, nullptr);
  CHECK(difference(found.features, expected.features) < 1e-6);
  CHECK(difference(found.logits, expected.logits) < 1e-6);
  const auto slope = torch::autograd::grad({found.logits.sum()}, {x})[0];
  auto moved = x.detach().clone();
  moved[0][1][0][2][3] += 1e-2F;
  const auto rise = as_model(net).forward(weights, moved, {1, 4}, nullptr).logits.sum() - expected.logits.sum();
  CHECK(std::abs(rise.item<double>() / 1e-2 - slope[0][1][0][2][3].item<double>()) < 1e-3);
}

TEST_CASE("training only the head leaves the module unchanged, and plain SGD steps are added directly") {
  const job_guards guards;
  const auto net = loaded(small_convolution());
  auto weights = at::stack({start_of(*net)});
  const auto before = weights.clone();
  const auto x = spread_numbers({1, 4, 1, 6, 6}, 3.0), d_logits = spread_numbers({1, 4, 5});
  tape kept;
  const auto seen = as_model(net).forward(weights, x, {0, 5}, &kept);
  net->backward(weights, kept, {0, 5}, d_logits, {}, parameter_choice::head_of(*net), {weights, -0.5F, true});
  const auto& head = parameter_called(*net, "head.weight");
  CHECK(at::equal(weights.narrow(1, 0, head.offset), before.narrow(1, 0, head.offset)));
  const auto expected = as_in_files(before[0], head) - 0.5 * at::mm(d_logits[0].t(), seen.features[0]);
  CHECK(difference(as_in_files(weights[0], head), expected) < 1e-6);
  CHECK(difference(as_in_files(weights[0], net->layout().back()),
                   as_in_files(before[0], net->layout().back()) - 0.5 * d_logits[0].sum(0)) < 1e-6);
}

TEST_CASE("parameters with requires_grad = False stay fixed when the module is trained") {
  auto made = small_convolution();
  made.frozen = {"weight"};
  const auto held = [](const std::shared_ptr<const module_net>& net) {
    std::vector<std::string> names;
    for (const auto& entry : net->layout())
      if (entry.held)
        names.push_back(entry.name);
    return names;
  };
  const auto net = loaded(made, {.trained = true});
  CHECK(held(net) == std::vector<std::string>{"weight"});
  CHECK(parameter_called(*net, "weight").frozen);
  CHECK(held(loaded(made)).empty()); // no part of it is trained
  CHECK(held(loaded(small_convolution(), {.trained = true})).empty());
  const auto more = std::dynamic_pointer_cast<const module_net>(net->with_frozen({false, true, false, false, true}));
  REQUIRE(more);
  CHECK(held(more) == std::vector<std::string>{"weight", "bias", "head.bias"});
  CHECK(held(net) == std::vector<std::string>{"weight"});
}

TEST_CASE("a table is passed to a module as [B, F], and tokens as [B, T] integers") {
  const job_guards guards;
  const scratch_folder folder;
  const auto file = folder.path() / "net.pt2";
  const module_requirements of_table{
      .input = {1, 1, 4}, .form = row_form::numbers, .classes = 3, .scores = true, .guards = {.sandbox = false}};
  made_program linear;
  linear.call("linear.default",
              {{"input", tensor_named("x")}, {"weight", linear.parameter("weight", spread_numbers({3, 4}))}});
  write_module(file, linear);
  const auto table = load_module(file, of_table).value();
  const auto x = spread_numbers({2, 21, 1, 1, 4}, 3.0);
  const auto flat = start_of(*table).unsqueeze(0);
  const auto scores = as_model(table).forward(flat, x, {0, 3}, nullptr).logits;
  CHECK(difference(scores, at::linear(x.view({2, 21, 4}), spread_numbers({3, 4}))) < 1e-6);
  CHECK(at::equal(table->differentiable(flat, x, {0, 3}, {}).logits.select(0, 0), scores.select(0, 0)));

  auto of_tokens = of_table;
  of_tokens.form = row_form::tokens;
  of_tokens.tokens = 7;
  made_program embedding;
  const auto embedded_tokens =
      embedding.call("embedding.default", {{"weight", embedding.parameter("weight", spread_numbers({7, 3}))},
                                           {"indices", tensor_named("x")}});
  embedding.call("mean.dim", {{"self", embedded_tokens}, {"dim", numbers({1})}});
  write_module(file, embedding);
  const auto tokens = load_module(file, of_tokens).value();
  const auto rows = at::arange(2 * 19 * 4, at::kFloat).remainder(7).view({2, 19, 1, 1, 4});
  const auto means = as_model(tokens).forward(start_of(*tokens).unsqueeze(0), rows, {0, 3}, nullptr).logits;
  const auto embedded = at::embedding(spread_numbers({7, 3}), rows.view({2, 19, 4}).to(at::kLong));
  CHECK(difference(means, embedded.mean({2})) < 1e-6);

  of_tokens.tokens = 8; // one more than the module embeds
  const auto refused = load_module(file, of_tokens);
  REQUIRE_FALSE(refused);
  CHECK_THAT(refused.error().front().text,
             Catch::Matchers::ContainsSubstring("rows of shape [16, 4] and type int64 (tokens below 8): ") &&
                 Catch::Matchers::ContainsSubstring("index out of range"));
}

TEST_CASE("a module written by PyTorch gives PyTorch's results") {
  const job_guards guards;
  const std::filesystem::path root(MNEME_SOURCE_DIR);
  const auto net = load_module(root / "scenarios/smoke/tiny.pt2",
                               {.input = {3, 10, 10}, .classes = classes, .guards = {.sandbox = false}})
                       .value();
  auto rows = formula("rows", 4 * 300);
  const auto x = at::from_blob(rows.data(), {1, 4, 3, 10, 10});
  const auto found = as_model(net).forward(start_of(*net).unsqueeze(0), x, {}, nullptr).features[0];
  std::ifstream golden(root / "tests/golden/modules/tiny.txt"); // tools/research/export/modules.py check
  auto expected = at::empty({4, 64}, at::kDouble);
  for (std::int64_t i = 0; i < expected.numel(); ++i)
    REQUIRE(golden >> expected.mutable_data_ptr<double>()[i]);
  CHECK(difference(found, expected) < 1e-6);
  CHECK(net->layout()[0].name == "conv.weight");
  CHECK(net->layout()[4].name == "bn.running_var");
}

TEST_CASE("bits do not depend on other models, or of a row on other rows") {
  const job_guards guards;
  const auto net = loaded(small_convolution());
  const auto flat = start_of(*net);
  const auto x = spread_numbers({3, 37, 1, 6, 6}, 3.0);
  const auto weights = at::stack({flat * 0.5, flat, flat * 2});
  const auto together = as_model(net).forward(weights, x, {0, 5}, nullptr);
  for (std::int64_t k = 0; k < 3; ++k) {
    const auto alone = as_model(net).forward(weights.narrow(0, k, 1), x.narrow(0, k, 1), {0, 5}, nullptr);
    CHECK(at::equal(alone.logits[0], together.logits[k]));
    for (const auto& [first, count] : {std::pair{0, 1}, {5, 3}, {17, 20}}) {
      const auto some =
          as_model(net).forward(weights.narrow(0, k, 1), x.narrow(0, k, 1).narrow(1, first, count), {}, nullptr);
      CHECK(difference(some.features[0], together.features[k].narrow(0, first, count)) < 1e-5);
    }
  }
}

TEST_CASE("without a head the net ends at its features and trains on a loss of them") {
  const job_guards guards;
  const auto net = loaded(small_convolution(), {.head = head_kind::none});
  CHECK(net->classes() == 0);
  REQUIRE(net->layout().size() == 3);
  auto weights = at::stack({start_of(*net)});
  const auto before = weights.clone();
  const auto x = spread_numbers({1, 4, 1, 6, 6}, 3.0);
  tape kept;
  const training_mode training;
  const auto seen = net->forward(weights, x, {}, &kept, &training);
  CHECK_FALSE(seen.logits.defined());
  net->backward(weights, kept, {}, {}, seen.features, {}, {weights, -0.01F, true});
  const auto after = as_model(net).forward(weights, x, {}, nullptr).features;
  CHECK(after.square().sum().item<double>() < 0.95 * seen.features.square().sum().item<double>());
  CHECK(at::equal(weights[0].narrow(0, 40, 4), before[0].narrow(0, 40, 4))); // the buffer
}

TEST_CASE("a module that returns scores gets no head") {
  const job_guards guards;
  const auto w = spread_numbers({5, 36});
  made_program made;
  const auto flat = flattened(made, tensor_named("x"));
  made.call("linear.default", {{"input", flat}, {"weight", made.parameter("w", w)}});
  const auto net = loaded(made, {.scores = true});
  REQUIRE(net->layout().size() == 1);
  CHECK_FALSE(net->layout()[0].head);
  const auto x = spread_numbers({1, 3, 1, 6, 6});
  const auto found = as_model(net).forward(start_of(*net).unsqueeze(0), x, {2, 5}, nullptr);
  CHECK(difference(found.logits[0], at::mm(x[0].flatten(1), w.t()).narrow(1, 2, 3)) < 1e-6);
}

TEST_CASE("the head gets no name that the module already has") {
  made_program made;
  const auto flat = flattened(made, tensor_named("x"));
  made.call("mul.Tensor", {{"self", flat}, {"other", made.parameter("head", at::ones({36}))}});
  const auto net = loaded(made);
  CHECK(net->layout()[1].name == "head.weight"); // "head" itself is another name
}

TEST_CASE("tensors created on the traced device are created on the device of the rows") {
  // Positions are created on the host by name, as tracing writes it, and added to the rows.
  made_program traced;
  const auto flat = flattened(traced, tensor_named("x"));
  const auto places =
      traced.call("arange.default", {{"end", number(36)},
                                     {"dtype", {{"as_scalar_type", 7}}},
                                     {"device", {{"as_device", {{"type", "cpu"}, {"index", nullptr}}}}}});
  const auto sum = traced.call("add.Tensor", {{"self", flat}, {"other", places}});
  traced.call("matmul.default", {{"self", sum}, {"other", traced.parameter("weight", spread_numbers({36, 5}))}});
  const stand_in_device here;
  const auto on_host = loaded(traced), there = loaded(traced, {.device = stand_in_device::name});
  const auto rows = spread_numbers({1, 3, 1, 6, 6});
  const job_guards guards;
  const auto outputs = [&](const std::shared_ptr<const module_net>& net, const at::Device& device) {
    return as_model(net).forward(start_of(*net).unsqueeze(0).to(device), rows.to(device), {}, nullptr).features.cpu();
  };
  CHECK(difference(outputs(there, at::Device(stand_in_device::name)), outputs(on_host, at::kCPU)) < 1e-5);
}
