#include "runtime/modules/load_module.hpp"
#include "runtime/modules/native_net.hpp"
#include "tests/support/exported_programs.hpp"
#include "tests/support/scratch.hpp"
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
using namespace mneme;
using namespace mneme::test;
using Catch::Matchers::ContainsSubstring;

namespace {

constexpr std::array<std::int64_t, 3> image{2, 8, 8};
constexpr std::int64_t classes = 5;

at::Tensor spread(at::IntArrayRef sizes, double scale = 1.0) {
  return (at::arange(c10::multiply_integers(sizes), at::kDouble).mul(0.7).sin() * 0.3 * scale)
      .to(at::kFloat)
      .view(sizes);
}

/// Constants of a batch norm.
struct norm_values {
  double epsilon = 1e-5, momentum = 0.1;
};

json norm(made_program& made, const std::string& name, const json& in, bool trains = true,
          const norm_values& values = {}) {
  return made.call("batch_norm.default", {{"input", in},
                                          {"weight", made.parameter(name + ".weight", at::ones({4}))},
                                          {"bias", made.parameter(name + ".bias", at::zeros({4}))},
                                          {"running_mean", made.buffer(name + ".running_mean", at::zeros({4}))},
                                          {"running_var", made.buffer(name + ".running_var", at::ones({4}))},
                                          {"training", flag(trains)},
                                          {"momentum", real(values.momentum)},
                                          {"eps", real(values.epsilon)},
                                          {"cudnn_enabled", flag(false)}});
}

json conv(made_program& made, const std::string& name, const json& in, std::vector<std::int64_t> sizes,
          std::int64_t stride = 1, std::int64_t groups = 1) {
  const auto padding = sizes[2] / 2;
  return made.call("conv2d.default", {{"input", in},
                                      {"weight", made.parameter(name + ".weight", spread(std::move(sizes)))},
                                      {"stride", numbers({stride, stride})},
                                      {"padding", numbers({padding, padding})},
                                      {"groups", number(groups)}});
}

json linear(made_program& made, const std::string& name, const json& in, std::int64_t out, std::int64_t inputs) {
  return made.call("linear.default", {{"input", in},
                                      {"weight", made.parameter(name + ".weight", spread({out, inputs}))},
                                      {"bias", made.parameter(name + ".bias", spread({out}))}});
}

/// [B, 2, 8, 8]: a stem, a residual block that halves the image, an average pool and the scores of 5 classes.
made_program residual_net(const std::string& activation = "relu.default", bool trains = true) {
  made_program made;
  const auto stem = made.call(
      "relu.default", {{"self", norm(made, "bn", conv(made, "stem", tensor_named("x"), {4, 2, 3, 3}), trains)}});
  const auto inner = made.call(activation, {{"self", conv(made, "a", stem, {4, 4, 3, 3}, 2)}});
  const auto body = norm(made, "block.bn", conv(made, "b", inner, {4, 2, 3, 3}, 1, 2), trains);
  const auto shortcut = conv(made, "down", stem, {4, 4, 1, 1}, 2);
  const auto sum =
      made.call("relu_.default", {{"self", made.call("add.Tensor", {{"self", body}, {"other", shortcut}})}});
  const auto pooled = made.call("avg_pool2d.default", {{"self", sum}, {"kernel_size", numbers({2, 2})}});
  const auto flat = made.call("flatten.using_ints", {{"self", pooled}, {"start_dim", number(1)}});
  const auto dropped = made.call("dropout.default", {{"input", flat}, {"p", real(0.5)}, {"train", flag(trains)}});
  linear(made, "fc", dropped, classes, 16);
  return made;
}

std::shared_ptr<const module_net> loaded(const made_program& program, module_requirements wanted = {}) {
  const scratch_folder folder;
  write_file(folder.path() / "net.pt2", program.bytes());
  wanted.input = image;
  wanted.classes = classes;
  wanted.scores = wanted.fused = wanted.trained = wanted.training = true;
  wanted.guards.sandbox = false;
  auto net = load_module(folder.path() / "net.pt2", wanted);
  if (!net)
    FAIL(diagnostic_text(net.error().front()));
  return *net;
}

std::vector<std::string> names_of(const model& net) {
  std::vector<std::string> names;
  for (const auto& entry : net.layout())
    names.push_back(entry.name);
  return names;
}

const model& model_of(const std::shared_ptr<const module_net>& net) { return *net; }

/// Autograd modes in which the executor computes a pass.
struct job_guards {
  at::NoGradGuard no_gradients{};
  at::AutoDispatchBelowADInplaceOrView no_tracking{};
};

} // namespace

TEST_CASE("a CNN with a residual sum becomes layers with the file's names and values") {
  const auto module = loaded(residual_net());
  const auto native = module->native();
  INFO((module->warnings().empty() ? "" : module->warnings().front()));
  REQUIRE(native);
  CHECK(module->warnings().empty());
  CHECK(native->couples_batch_rows());
  CHECK(native->uses_random_numbers());
  const auto names = names_of(*native);
  for (const auto* const name :
       {"stem.weight", "bn.bias", "b.weight", "block.bn.running_mean", "down.weight", "fc.bias"})
    CHECK(std::find(names.begin(), names.end(), name) != names.end());

  const job_guards guards;
  auto of_module = initial_weights(*module, 1);
  module->put_own_values(of_module);
  auto of_native = initial_weights(*native, 1); // the file's values
  for (const auto& entry : native->layout())
    for (const auto& other : module->layout())
      if (entry.name == other.name)
        CHECK(at::equal(as_in_files(of_native, entry), as_in_files(of_module, other)));
  const auto x = spread({1, 12, 2, 8, 8}, 3.0);
  const auto expected = model_of(module).forward(of_module.unsqueeze(0), x, {0, 5}, nullptr);
  const auto found = native->forward(of_native.unsqueeze(0), x, {0, 5}, nullptr, nullptr);
  CHECK(at::allclose(found.logits, expected.logits, 1e-5, 1e-5));
}

TEST_CASE("a native net trains its running statistics and has the module's gradients") {
  const auto values = GENERATE(norm_values{}, norm_values{.epsilon = 1e-3, .momentum = 0.01});
  made_program made;
  const auto body = norm(made, "bn", conv(made, "stem", tensor_named("x"), {4, 2, 3, 3}), true, values);
  const auto pooled =
      made.call("mean.dim", {{"self", made.call("elu.default", {{"self", body}})}, {"dim", numbers({2, 3})}});
  linear(made, "fc", pooled, classes, 4);
  const auto module = loaded(made);
  REQUIRE(module->native());
  const auto& native = *module->native();
  const job_guards guards;
  auto of_module = initial_weights(*module, 1);
  module->put_own_values(of_module);
  auto theirs = of_module.unsqueeze(0).clone(), ours = initial_weights(native, 1).unsqueeze(0);
  const auto x = spread({1, 16, 2, 8, 8}, 3.0);
  const auto slope = spread({1, 16, 5});
  const training_mode training;
  tape of_theirs, of_ours;
  static_cast<void>(model_of(module).forward(theirs, x, {0, 5}, &of_theirs, &training));
  static_cast<void>(native.forward(ours, x, {0, 5}, &of_ours, &training));
  auto d_theirs = at::zeros_like(theirs), d_ours = at::zeros_like(ours);
  model_of(module).backward(theirs, of_theirs, {0, 5}, slope, {}, {}, {d_theirs, 1.0F});
  native.backward(ours, of_ours, {0, 5}, slope, {}, {}, {d_ours, 1.0F});
  for (const auto& entry : native.layout())
    for (const auto& other : module->layout())
      if (entry.name == other.name) {
        INFO(entry.name);
        CHECK(at::allclose(as_in_files(ours[0], entry), as_in_files(theirs[0], other), 1e-5, 1e-5));
        CHECK(at::allclose(as_in_files(d_ours[0], entry), as_in_files(d_theirs[0], other), 1e-4, 1e-4));
      }
}

TEST_CASE("batch norms in evaluation mode keep their running statistics in the native net") {
  const auto module = loaded(residual_net("relu.default", false));
  REQUIRE(module->native());
  CHECK_FALSE(module->native()->uses_random_numbers());
  for (const auto& entry : module->native()->layout())
    CHECK(entry.held == (entry.name.find("running_") != std::string::npos));
}

TEST_CASE("a program that only resembles layers has no native net") {
  made_program made; // relu_ changes the value that the sum reads again
  const auto stem = conv(made, "stem", tensor_named("x"), {4, 2, 3, 3});
  const auto active = made.call("relu_.default", {{"self", stem}});
  const auto sum = made.call("add.Tensor", {{"self", conv(made, "a", active, {4, 4, 3, 3})}, {"other", stem}});
  linear(made, "fc", made.call("mean.dim", {{"self", sum}, {"dim", numbers({2, 3})}}), classes, 4);
  const auto module = loaded(made);
  CHECK_FALSE(module->native());
  REQUIRE(module->warnings().size() == 1);
  CHECK_THAT(module->warnings()[0], ContainsSubstring("compute other scores than the file"));
}

TEST_CASE("weights that two layers share have no native net") {
  made_program made;
  const auto flat = made.call("flatten.using_ints", {{"self", tensor_named("x")}, {"start_dim", number(1)}});
  const auto weight = made.parameter("a.weight", spread({128, 128}));
  const auto once = made.call("linear.default", {{"input", flat}, {"weight", weight}});
  const auto twice = made.call("linear.default", {{"input", once}, {"weight", weight}});
  linear(made, "fc", twice, classes, 128);
  const auto module = loaded(made);
  CHECK_FALSE(module->native());
  CHECK_THAT(module->warnings().at(0), ContainsSubstring("'a' is used twice"));
}

TEST_CASE("the last block of attention computes the first token only if no other token is read") {
  const std::vector<std::string> net{"patch-embedding 4 16", "residual [", "n1: layer-norm 1e-05",
                                     "a: attention 2",       "]",          "first-token",
                                     "head: linear classes"};
  CHECK(first_token_only(net) == std::vector<std::string>{"patch-embedding 4 16", "residual [", "n1: layer-norm 1e-05",
                                                          "a: attention 2 first-token", "] shortcut [", "first-token",
                                                          "]", "head: linear classes"});
  const std::vector<std::string> mean{"patch-embedding 4 16", "mean-tokens", "head: linear classes"};
  CHECK(first_token_only(mean) == mean);
}
