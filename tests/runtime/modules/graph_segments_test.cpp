#include "runtime/models/frozen_parameters.hpp"
#include "runtime/models/network.hpp"
#include "runtime/modules/graph_layers.hpp"
#include "runtime/modules/load_module.hpp"
#include "tests/support/exported_programs.hpp"
#include "tests/support/scratch.hpp"
#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <torch/csrc/autograd/autograd.h>
using namespace mneme;
using namespace mneme::test;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

namespace {

constexpr std::int64_t classes = 5;

at::Tensor spread(at::IntArrayRef sizes, double scale = 0.3) {
  return (at::arange(c10::multiply_integers(sizes), at::kDouble).mul(0.7).sin() * scale).to(at::kFloat).view(sizes);
}

json conv(made_program& made, const std::string& name, const json& in, std::vector<std::int64_t> sizes) {
  const auto padding = sizes[2] / 2;
  return made.call("conv2d.default", {{"input", in},
                                      {"weight", made.parameter(name + ".weight", spread(std::move(sizes)))},
                                      {"padding", numbers({padding, padding})}});
}

json linear(made_program& made, const std::string& name, const json& in, std::int64_t out, std::int64_t inputs) {
  return made.call("linear.default", {{"input", in},
                                      {"weight", made.parameter(name + ".weight", spread({out, inputs}))},
                                      {"bias", made.parameter(name + ".bias", spread({out}))}});
}

json norm(made_program& made, const std::string& name, const json& in) {
  return made.call("batch_norm.default", {{"input", in},
                                          {"weight", made.parameter(name + ".weight", at::ones({4}))},
                                          {"bias", made.parameter(name + ".bias", at::zeros({4}))},
                                          {"running_mean", made.buffer(name + ".running_mean", at::zeros({4}))},
                                          {"running_var", made.buffer(name + ".running_var", at::ones({4}))},
                                          {"training", flag(true)},
                                          {"momentum", real(0.1)},
                                          {"eps", real(1e-5)},
                                          {"cudnn_enabled", flag(false)}});
}

json concatenated(made_program& made, const json& a, const json& b) {
  const auto name = [](const json& value) { return value["as_tensor"]["name"].get<std::string>(); };
  return made.call("cat.default", {{"tensors", tensors_named({name(a), name(b)})}, {"dim", number(1)}});
}

/// [B, 2, 8, 8]: a stem, a residual block with a sine and a shift by a buffer, two branches that are concatenated, and
/// the scores of 5 classes.
made_program mixed_net() {
  made_program made;
  const auto stem = made.call("relu.default", {{"self", conv(made, "stem", tensor_named("x"), {4, 2, 3, 3})}});
  const auto shifted = made.call("mul.Tensor", {{"self", conv(made, "a", stem, {4, 4, 3, 3})},
                                                {"other", made.buffer("shift", spread({1, 4, 1, 1}, 2.0))}});
  const auto body = conv(made, "b", made.call("sin.default", {{"self", shifted}}), {4, 4, 3, 3});
  const auto sum = made.call("add.Tensor", {{"self", body}, {"other", stem}});
  const auto joined = concatenated(made, conv(made, "left", sum, {4, 4, 1, 1}), conv(made, "right", sum, {4, 4, 3, 3}));
  const auto last = made.call("relu.default", {{"self", conv(made, "last", joined, {4, 8, 3, 3})}});
  linear(made, "fc", made.call("mean.dim", {{"self", last}, {"dim", numbers({2, 3})}}), classes, 4);
  return made;
}

std::shared_ptr<const module_net> loaded(const made_program& program, std::array<std::int64_t, 3> input = {2, 8, 8}) {
  const scratch_folder folder;
  write_file(folder.path() / "net.pt2", program.bytes());
  module_requirements wanted{.input = input, .form = form_of_rows(input, 0), .classes = classes, .scores = true};
  wanted.fused = wanted.trained = wanted.training = true;
  wanted.guards.sandbox = false;
  auto net = load_module(folder.path() / "net.pt2", wanted);
  if (!net)
    FAIL(diagnostic_text(net.error().front()));
  return *net;
}

std::string note_of(const module_net& module) {
  const auto* const native = dynamic_cast<const network*>(module.native().get());
  return native ? native->note() : module.warnings().at(0);
}

/// Autograd modes in which the executor computes a pass.
struct job_guards {
  at::NoGradGuard no_gradients{};
  at::AutoDispatchBelowADInplaceOrView no_tracking{};
};

struct pass_results {
  at::Tensor logits{}, gradients{}; ///< [K, B, classes], [K, P]
};

/// Forward and backward pass of K models in training. @param weights [K, P] @param x [K, B, ...]
pass_results pass_of(const model& net, const at::Tensor& weights, const at::Tensor& x, class_range range = {0, 5}) {
  std::vector<rng_key> streams(static_cast<std::size_t>(weights.size(0)), rng_key{.seed = 3, .index = 7});
  const training_mode training{.streams = streams};
  tape kept;
  auto logits = net.forward(weights, x, range, &kept, &training).logits.clone();
  auto gradients = at::zeros_like(weights);
  const auto slope = spread({1, logits.size(1), logits.size(2)}).expand(logits.sizes()).contiguous();
  net.backward(weights, kept, range, slope, {}, {}, {gradients, 1.0F});
  return {std::move(logits), std::move(gradients)};
}

} // namespace

TEST_CASE("operators without a layer become segments, and the others layers, with the module's values and gradients") {
  const auto module = loaded(mixed_net());
  const auto native = module->native();
  INFO(note_of(*module));
  REQUIRE(native);
  // mul and sin are one segment; left, right and cat another.
  CHECK_THAT(note_of(*module), ContainsSubstring("9 of 14 operators") && ContainsSubstring("sin.default") &&
                                   ContainsSubstring("cat.default"));
  const job_guards guards;
  auto theirs = initial_weights(*module, 1);
  module->put_own_values(theirs);
  const auto ours = initial_weights(*native, 1);
  const auto x = spread({1, 6, 2, 8, 8}, 1.0);
  const auto expected = pass_of(*module, theirs.unsqueeze(0), x), found = pass_of(*native, ours.unsqueeze(0), x);
  CHECK(at::allclose(found.logits, expected.logits, 1e-5, 1e-5));
  CHECK(native->layout().size() == module->layout().size());
  for (const auto& entry : native->layout())
    for (const auto& other : module->layout())
      if (entry.name == other.name) {
        INFO(entry.name);
        CHECK(entry.frozen == (entry.name == "shift"));
        CHECK(at::equal(as_in_files(ours, entry), as_in_files(theirs, other)));
        if (!entry.frozen)
          CHECK(at::allclose(as_in_files(found.gradients[0], entry), as_in_files(expected.gradients[0], other), 1e-4,
                             1e-4));
      }
}

TEST_CASE("the bits of a model with segments do not depend on the models that are fused with it") {
  const auto native = loaded(mixed_net())->native();
  REQUIRE(native);
  const job_guards guards;
  const auto weights = initial_weights(*native, 1) + 0.1 * spread({3, native->size()});
  for (const std::int64_t rows : {1, 3, 8}) {
    const auto x = spread({3, rows, 2, 8, 8}, 1.0);
    const auto together = pass_of(*native, weights, x);
    for (std::int64_t k = 0; k < 3; ++k) {
      const auto alone = pass_of(*native, weights.narrow(0, k, 1).clone(), x.narrow(0, k, 1).clone());
      CHECK(at::equal(alone.logits[0], together.logits[k]));
      for (const auto& entry : native->layout())
        if (!entry.frozen)
          CHECK(at::equal(as_in_files(alone.gradients[0], entry), as_in_files(together.gradients[k], entry)));
    }
  }
}

TEST_CASE("a result that no linear layer computes is a segment, and a pass selects the scores of its classes") {
  made_program made;
  const auto hidden = made.call("relu.default", {{"self", linear(made, "a", tensor_named("x"), 8, 6)}});
  made.call("softmax.int", {{"self", linear(made, "b", hidden, classes, 8)}, {"dim", number(1)}});
  const auto module = loaded(made, {1, 1, 6});
  const auto native = module->native();
  INFO(note_of(*module));
  REQUIRE(native);
  CHECK_THAT(note_of(*module), ContainsSubstring("3 of 4 operators"));
  const job_guards guards;
  auto theirs = initial_weights(*module, 1);
  module->put_own_values(theirs);
  const auto x = spread({1, 4, 1, 1, 6}, 1.0);
  const auto expected = pass_of(*module, theirs.unsqueeze(0), x, {1, 3});
  const auto found = pass_of(*native, initial_weights(*native, 1).unsqueeze(0), x, {1, 3});
  CHECK(found.logits.size(2) == 2);
  CHECK(at::allclose(found.logits, expected.logits, 1e-5, 1e-6));
}

TEST_CASE("a segment contains writes to a part of a value that it reads") {
  made_program made;
  const auto hidden = linear(made, "a", tensor_named("x"), 4, 6);
  const auto mask = made.call("ones_like.default", {{"self", hidden}});
  const auto part =
      made.call("slice.Tensor",
                {{"self", mask}, {"dim", number(1)}, {"start", number(1)}, {"end", number(3)}, {"step", number(1)}});
  made.call("fill_.Scalar", {{"self", part}, {"value", real(0.25)}}); // no call reads its result
  linear(made, "fc", made.call("mul.Tensor", {{"self", hidden}, {"other", mask}}), classes, 4);
  const auto module = loaded(made, {1, 1, 6});
  INFO(note_of(*module));
  CHECK(module->native());
}

TEST_CASE("a segment contains no later write to its result") {
  made_program made;
  const auto hidden = linear(made, "a", tensor_named("x"), 8, 6);
  const auto wave = made.call("sin.default", {{"self", linear(made, "b", hidden, 8, 8)}});
  const auto sum = made.call("add_.Tensor", {{"self", wave}, {"other", hidden}});
  const auto active = made.call("hardswish_.default", {{"self", made.call("cos.default", {{"self", sum}})}});
  linear(made, "fc", active, classes, 8);
  const auto module = loaded(made, {1, 1, 6});
  INFO(note_of(*module));
  CHECK(module->native());
}

TEST_CASE("a residual block without a layer that has weights is part of the segment around it") {
  made_program made;
  auto x = linear(made, "a", tensor_named("x"), 8, 6);
  for (const auto* const name : {"b", "c"}) {
    const auto wave = made.call("sin.default", {{"self", x}});
    const auto weight = made.parameter(name, spread({8}));
    const auto scaled = made.call("mul.Tensor", {{"self", wave}, {"other", weight}});
    x = made.call("add.Tensor", {{"self", scaled}, {"other", x}});
  }
  linear(made, "fc", x, classes, 8);
  const auto program = read_program(made.bytes());
  REQUIRE(program);
  const auto sizes = program->sizes(spread({7, 6}));
  const auto layers = translate_graph(program->program(), sizes, {.training = true, .partly = true, .scores = true});
  REQUIRE(layers.segments.size() == 1);
  CHECK(layers.layers ==
        std::vector<std::string>{"a: linear 8", layers.segments[0].text(), "fc: linear " + std::to_string(classes)});
}

TEST_CASE("a gradient of a segment that needs too much memory is named with the limit") {
  made_program made;
  const auto hidden = linear(made, "a", tensor_named("x"), 36, 6);
  const auto named = [](const std::string& name) { return json{{"as_sym_int", {{"as_name", name}}}}; };
  made.size_call("sym_size.int", {{"self", tensor_named("x")}, {"dim", number(0)}}, "rows");
  made.size_call("_operator.mul", {{"a", named("rows")}, {"b", named("rows")}}, "area");
  made.size_call("_operator.mul", {{"a", named("area")}, {"b", number(16)}}, "many");
  const json shape = {{"as_sym_ints", json::array({{{"as_name", "many"}}, {{"as_int", 36}}})}};
  const auto expanded =
      made.call("expand.default", {{"self", made.parameter("scale", at::ones({36}))}, {"size", shape}});
  const auto row = made.call("select.int", {{"self", expanded}, {"dim", number(0)}, {"index", number(0)}});
  linear(made, "fc", made.call("mul.Tensor", {{"self", hidden}, {"other", row}}), classes, 36);
  const auto native = loaded(made, {1, 1, 6})->native();
  REQUIRE(native);
  const job_guards guards;
  const auto weights = initial_weights(*native, 1).unsqueeze(0);
  CHECK_NOTHROW(pass_of(*native, weights, spread({1, 20, 1, 1, 6})));
  CHECK_THROWS_MATCHES(
      pass_of(*native, weights, spread({1, 1024, 1, 1, 6})), std::runtime_error, // the gradient has 2.4 GB
      MessageMatches(ContainsSubstring("net.pt2': its gradient failed on 1024 rows: it needs more than 1") &&
                     ContainsSubstring("bytes of memory, the limit for its rows (docs/modules.md)")));
  CHECK_NOTHROW(pass_of(*native, weights, spread({1, 20, 1, 1, 6})));
}

TEST_CASE("a net with segments has gradients of gradients") {
  const auto native = loaded(mixed_net())->native();
  REQUIRE(native);
  auto weights = initial_weights(*native, 1).unsqueeze(0).requires_grad_(true);
  const auto x = spread({1, 6, 2, 8, 8}, 1.0);
  const auto squared_gradient = [&](const at::Tensor& of) {
    const auto logits = native->differentiable(of, x, {0, 5}, {}).logits;
    return torch::autograd::grad({logits.square().sum()}, {of}, {}, true, true)[0].square().sum();
  };
  const auto slope = torch::autograd::grad({squared_gradient(weights)}, {weights})[0];
  const auto along = spread(weights.sizes()).mul(1e-3);
  const auto ahead = squared_gradient((weights + along).detach().requires_grad_(true)),
             behind = squared_gradient((weights - along).detach().requires_grad_(true));
  CHECK((slope * along).sum().item<double>() * 2.0 == Catch::Approx((ahead - behind).item<double>()).epsilon(0.05));
}

TEST_CASE("dropout in a segment draws in training only, and repeats with its key") {
  made_program made;
  const auto hidden = linear(made, "a", tensor_named("x"), 32, 6);
  const auto dropped =
      made.call("dropout.default",
                {{"input", made.call("sin.default", {{"self", hidden}})}, {"p", real(0.5)}, {"train", flag(true)}});
  linear(made, "fc", made.call("cos.default", {{"self", dropped}}), classes, 32);
  const auto native = loaded(made, {1, 1, 6})->native();
  REQUIRE(native);
  CHECK(native->uses_random_numbers());
  const job_guards guards;
  const auto weights = initial_weights(*native, 1).unsqueeze(0);
  const auto x = spread({1, 4, 1, 1, 6}, 1.0);
  const auto first = pass_of(*native, weights, x).logits, second = pass_of(*native, weights, x).logits;
  CHECK(at::equal(first, second));
  CHECK_FALSE(at::allclose(first, native->forward(weights, x, {0, 5}, nullptr).logits));
}

TEST_CASE("batch norms in a segment update their running statistics as the module does") {
  made_program made;
  const auto stem = conv(made, "stem", tensor_named("x"), {4, 2, 3, 3});
  const auto left = norm(made, "left.bn", conv(made, "left.conv", stem, {4, 4, 1, 1}));
  const auto right = norm(made, "right.bn", conv(made, "right.conv", stem, {4, 4, 3, 3}));
  const auto joined = norm(made, "bn", conv(made, "last", concatenated(made, left, right), {4, 8, 3, 3}));
  linear(made, "fc", made.call("mean.dim", {{"self", joined}, {"dim", numbers({2, 3})}}), classes, 4);
  const auto module = loaded(made);
  const auto native = module->native();
  INFO(note_of(*module));
  REQUIRE(native);
  CHECK(native->couples_batch_rows());
  const job_guards guards;
  auto theirs = initial_weights(*module, 1);
  module->put_own_values(theirs);
  const auto start = initial_weights(*native, 1);
  const auto x = spread({1, 6, 2, 8, 8}, 1.0);

  auto their_weights = theirs.unsqueeze(0).clone(), our_weights = start.unsqueeze(0).clone();
  const auto expected = pass_of(*module, their_weights, x), found = pass_of(*native, our_weights, x);
  CHECK(at::allclose(found.logits, expected.logits, 1e-5, 1e-5));
  for (const auto& entry : native->layout())
    for (const auto& other : module->layout())
      if (entry.name == other.name) {
        INFO(entry.name);
        CHECK(at::allclose(as_in_files(our_weights[0], entry), as_in_files(their_weights[0], other), 1e-5, 1e-6));
        CHECK(entry.buffer != at::equal(as_in_files(our_weights[0], entry), as_in_files(start, entry)));
        if (!entry.buffer)
          CHECK(at::allclose(as_in_files(found.gradients[0], entry), as_in_files(expected.gradients[0], other), 1e-4,
                             1e-4));
      }

  auto together = start + 0.1 * spread({3, native->size()}).abs();
  const auto before = together.clone();
  const auto rows = spread({3, 6, 2, 8, 8}, 1.0);
  static_cast<void>(pass_of(*native, together, rows));
  for (std::int64_t k = 0; k < 3; ++k) {
    auto alone = before.narrow(0, k, 1).clone();
    static_cast<void>(pass_of(*native, alone, rows.narrow(0, k, 1).clone()));
    CHECK(at::equal(alone[0], together[k]));
  }
}

TEST_CASE("running statistics in a segment are updated only if a parameter of their layer is trained") {
  made_program made;
  const auto stem = conv(made, "stem", tensor_named("x"), {4, 2, 3, 3});
  const auto left = norm(made, "left", conv(made, "a", stem, {4, 4, 1, 1}));
  const auto right = norm(made, "right", conv(made, "b", stem, {4, 4, 3, 3}));
  const auto joined = concatenated(made, left, right);
  linear(made, "fc", made.call("mean.dim", {{"self", joined}, {"dim", numbers({2, 3})}}), classes, 8);
  const auto native = loaded(made)->native();
  REQUIRE(native);
  const auto held = with_frozen(native, {"left.running_mean", "left.running_var"});
  REQUIRE(held);
  const job_guards guards;
  const auto chosen = parameter_choice::layers_of(*native, {"right"});
  const auto statistics = chosen.with_statistics(*native);
  for (const auto& [net, trained, moved] :
       {std::tuple{native, &chosen, "right"}, std::tuple{*held, &statistics, "right"},
        std::tuple{native, static_cast<const parameter_choice*>(nullptr), "left right"}}) {
    auto weights = initial_weights(*net, 1).unsqueeze(0);
    const auto before = weights.clone();
    const training_mode training{.trained = trained};
    tape kept;
    static_cast<void>(net->forward(weights, spread({1, 6, 2, 8, 8}, 1.0), {0, 5}, &kept, &training));
    for (const auto& entry : net->layout())
      if (entry.buffer) {
        INFO(entry.name);
        const bool moves = std::string(moved).find(entry.name.substr(0, entry.name.find('.'))) != std::string::npos;
        CHECK(moves != at::equal(as_in_files(weights[0], entry), as_in_files(before[0], entry)));
      }
  }
}

TEST_CASE("a net returns the statistics of batch norms in a segment, by name") {
  made_program made;
  const auto stem = norm(made, "bn", conv(made, "stem", tensor_named("x"), {4, 2, 3, 3}));
  const auto joined = concatenated(made, norm(made, "left", conv(made, "a", stem, {4, 4, 1, 1})), stem);
  linear(made, "fc", made.call("mean.dim", {{"self", joined}, {"dim", numbers({2, 3})}}), classes, 8);
  const auto module = loaded(made);
  const auto native = module->native();
  REQUIRE(native);
  const at::NoGradGuard no_gradients;
  const auto x = spread({2, 6, 2, 8, 8}, 1.0);
  auto theirs = initial_weights(*module, 1);
  module->put_own_values(theirs);
  const auto statistics = [&](const model& net, const at::Tensor& weights) {
    const training_mode training;
    return net.differentiable(weights.expand({2, -1}).clone(), x, {0, 5}, {.training = &training, .statistics = true})
        .statistics;
  };
  const auto expected = statistics(*module, theirs.unsqueeze(0));
  const auto found = statistics(*native, initial_weights(*native, 1).unsqueeze(0));
  REQUIRE(found.size() == 2);
  for (std::size_t i = 0; i < 2; ++i) {
    CHECK(found[i].name == expected[i].name);
    CHECK(found[i].moves);
    CHECK(at::allclose(found[i].mean, expected[i].mean, 1e-5, 1e-6));
    CHECK(at::allclose(found[i].variance, expected[i].variance, 1e-5, 1e-6));
    CHECK(found[i].running_mean.sizes() == at::IntArrayRef({2, 4}));
    const auto& mean = native->layout().at(native->layout().size() - 4 + 2 * i);
    CHECK((mean.name == found[i].name + ".running_mean" && mean.offset == found[i].mean_offset));
  }
}

TEST_CASE("a module runs as a whole if no layer besides the head has weights") {
  made_program first;
  const auto wave = first.call("sin.default", {{"self", tensor_named("x")}});
  linear(first, "fc", first.call("flatten.using_ints", {{"self", wave}, {"start_dim", number(1)}}), classes, 128);
  const auto module = loaded(first);
  CHECK_FALSE(module->native());
  CHECK_THAT(module->warnings().at(0),
             ContainsSubstring("No part runs as layers: no layer before the head has weights"));
}
