#include "runtime/modules/load_module.hpp"
#include "tests/support/module_files.hpp"
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
using namespace mneme;
using namespace mneme::test;
using Catch::Matchers::ContainsSubstring;

namespace {

constexpr std::array<std::int64_t, 3> image{1, 6, 6};
constexpr std::int64_t classes = 5;

/// [B, 1, 6, 6]: convolution of 3x3 with 4 filters, batch norm, ReLU, dropout, flat: 144 features.
/// @param rate of the dropout @param momentum of the running statistics
made_program norm_net(double rate, double momentum = 0.1) {
  made_program made;
  const auto conv =
      made.call("conv2d.default", {{"input", tensor_named("x")},
                                   {"weight", made.parameter("conv.weight", spread_numbers({4, 1, 3, 3}))},
                                   {"padding", numbers({1, 1})}});
  const auto norm = made.call("batch_norm.default", {{"input", conv},
                                                     {"weight", made.parameter("bn.weight", at::ones({4}))},
                                                     {"bias", made.parameter("bn.bias", at::zeros({4}))},
                                                     {"running_mean", made.buffer("bn.running_mean", at::zeros({4}))},
                                                     {"running_var", made.buffer("bn.running_var", at::ones({4}))},
                                                     {"training", flag(true)},
                                                     {"momentum", real(momentum)},
                                                     {"eps", real(1e-5)},
                                                     {"cudnn_enabled", flag(false)}});
  const auto active = made.call("relu.default", {{"self", norm}});
  const auto dropped = made.call("dropout.default", {{"input", active}, {"p", real(rate)}, {"train", flag(true)}});
  made.call("flatten.using_ints", {{"self", dropped}, {"start_dim", number(1)}});
  return made;
}

expected<std::shared_ptr<const module_net>> load(const made_program& program, module_requirements wanted) {
  const scratch_folder folder;
  write_file(folder.path() / "net.pt2", program.bytes());
  wanted.input = image;
  wanted.classes = classes;
  wanted.guards.sandbox = false;
  return load_module(folder.path() / "net.pt2", wanted);
}

std::shared_ptr<const module_net> loaded(const made_program& program, bool training = true) {
  auto net = load(program, {.trained = true, .training = training});
  if (!net)
    FAIL(diagnostic_text(net.error().front()));
  return *net;
}

at::Tensor start_of(const module_net& net) {
  auto flat = initial_weights(net, 1);
  net.put_own_values(flat);
  return flat;
}

const parameter& entry_named(const model& net, const std::string& name) {
  for (const auto& entry : net.layout())
    if (entry.name == name)
      return entry;
  FAIL("no parameter is called " << name);
  return net.layout().front();
}

at::Tensor value_of(const model& net, const at::Tensor& flat, const std::string& name) {
  return as_in_files(flat, entry_named(net, name));
}

/// Autograd modes in which the executor computes a pass.
struct job_guards {
  at::NoGradGuard no_gradients{};
  at::AutoDispatchBelowADInplaceOrView no_tracking{};
};

} // namespace

TEST_CASE("running statistics are buffers of the layout if the module is in training mode") {
  const auto net = loaded(norm_net(0.0)), still = loaded(norm_net(0.0), false);
  CHECK(entry_named(*net, "bn.running_mean").buffer);
  CHECK_FALSE(entry_named(*net, "bn.running_mean").frozen);
  CHECK(net->couples_batch_rows());
  CHECK_FALSE(net->uses_random_numbers());
  CHECK(loaded(norm_net(0.5))->uses_random_numbers());
  CHECK_FALSE(entry_named(*still, "bn.running_mean").buffer);
  CHECK(entry_named(*still, "bn.running_mean").frozen);
  CHECK_FALSE(still->couples_batch_rows());
  CHECK_FALSE(loaded(norm_net(0.5), false)->uses_random_numbers());
}

TEST_CASE("a training pass updates each model's running statistics, and only parameters have gradients") {
  const auto net = loaded(norm_net(0.0));
  const job_guards guards;
  auto weights = at::stack({start_of(*net), start_of(*net) * 1.5}); // [K, P]
  const auto before = weights.clone();
  const auto x = spread_numbers({2, 20, 1, 6, 6}, 3.0);
  const training_mode training;
  tape kept;
  const auto seen = as_model(net).forward(weights, x, {0, 5}, &kept, &training);
  for (std::int64_t k = 0; k < 2; ++k) {
    const auto maps = at::conv2d(x[k], value_of(*net, before[k], "conv.weight"), {}, 1, 1);
    const auto mean = maps.mean(at::IntArrayRef{0, 2, 3});
    CHECK(at::allclose(value_of(*net, weights[k], "bn.running_mean"),
                       value_of(*net, before[k], "bn.running_mean") * 0.9 + mean * 0.1, 1e-4, 1e-6));
    CHECK(at::equal(value_of(*net, weights[k], "bn.weight"), value_of(*net, before[k], "bn.weight")));
  }
  auto into = at::full_like(weights, 9.0F);
  net->backward(weights, kept, {0, 5}, at::ones({2, 20, 5}), {}, {}, {into, 1.0F});
  CHECK((value_of(*net, into[0], "bn.running_mean") == 9.0F).all().item<bool>());
  CHECK_FALSE((value_of(*net, into[0], "conv.weight") == 9.0F).any().item<bool>());

  auto alone = before.narrow(0, 1, 1).clone();
  const auto second = as_model(net).forward(alone, x.narrow(0, 1, 1), {0, 5}, &kept, &training);
  CHECK(at::equal(second.logits[0], seen.logits[1]));
  CHECK(at::equal(alone[0], weights[1]));
  auto evaluated = before.clone();
  static_cast<void>(as_model(net).forward(evaluated, x, {0, 5}, nullptr));
  CHECK(at::equal(evaluated, before));
}

TEST_CASE("layers without trained parameters are in evaluation mode") {
  const auto net = loaded(norm_net(0.5));
  const job_guards guards;
  const auto x = spread_numbers({1, 20, 1, 6, 6}, 3.0);
  const std::vector<rng_key> streams{{.seed = 5}};
  const auto moves = [&](const parameter_choice& choice) {
    auto weights = start_of(*net).unsqueeze(0);
    const auto before = weights.clone();
    tape kept;
    const training_mode training{.streams = streams, .trained = &choice};
    const auto seen = as_model(net).forward(weights, x, {0, 5}, &kept, &training);
    const bool drops = !at::equal(seen.features, as_model(net).forward(before, x, {0, 5}, nullptr).features);
    return std::pair(!at::equal(weights, before), drops);
  };
  CHECK(moves({}) == std::pair(true, true));
  CHECK(moves(parameter_choice::head_of(*net)) == std::pair(false, false));
  CHECK(moves(parameter_choice::layers_of(*net, {"conv"})) == std::pair(false, true));
  CHECK(moves(parameter_choice::layers_of(*net, {"bn"})) == std::pair(true, true));
  CHECK(moves(parameter_choice::head_of(*net).with_statistics(*net)) == std::pair(true, true));
  std::vector<bool> chosen(net->layout().size());
  chosen[3] = chosen[4] = true; // running statistics
  const auto held = net->with_frozen(chosen);
  CHECK_FALSE(held->couples_batch_rows());
}

TEST_CASE("the net as a function returns the statistics of its batch norms and updates none") {
  const auto momentum = GENERATE(0.1, 0.25);
  const auto net = loaded(norm_net(0.0, momentum));
  const auto weights = start_of(*net).unsqueeze(0);
  const auto before = weights.clone();
  const auto x = spread_numbers({1, 8, 1, 6, 6}, 3.0);
  const training_mode training;
  const auto found = net->differentiable(weights, x, {0, 5}, {.training = &training, .statistics = true});
  CHECK(at::equal(weights, before));
  REQUIRE(found.statistics.size() == 1);
  CHECK(found.statistics[0].name == "bn");
  CHECK(found.statistics[0].moves);
  auto moved = weights.clone();
  tape kept;
  const auto seen = as_model(net).forward(moved, x, {0, 5}, &kept, &training);
  CHECK(at::allclose(found.logits, seen.logits, 1e-4, 1e-5));
  CHECK(at::allclose(with_updated_running_stats(weights, found.statistics), moved, 1e-4, 1e-5));
}

TEST_CASE("a program that was exported in evaluation mode gives a warning if it is trained") {
  auto exported = norm_net(0.5);
  const auto warning = [&](bool trained) {
    const auto texts = load(exported, {.trained = trained, .training = true}).value()->warnings();
    return texts.empty() ? std::string() : texts.front();
  };
  CHECK(warning(true).empty());
  for (auto& node : exported.nodes)
    for (auto& input : node["inputs"])
      if (input["name"] == "training" || input["name"] == "train")
        input["arg"] = flag(false);
  CHECK_THAT(warning(true), ContainsSubstring("exported in evaluation mode") &&
                                ContainsSubstring("as in torch.ops.aten.batch_norm.default (v1)"));
  CHECK(warning(false).empty());
}

TEST_CASE("in evaluation mode the net as a function returns one set of statistics, of all rows") {
  const auto net = loaded(norm_net(0.0));
  const auto weights = start_of(*net).unsqueeze(0);
  const auto x = spread_numbers({1, 20, 1, 6, 6}, 3.0); // a call of evaluation has 16 rows at most
  const auto found = net->differentiable(weights, x, {0, 5}, {.statistics = true});
  REQUIRE(found.statistics.size() == 1);
  CHECK(found.statistics[0].values == 20 * 36);
  CHECK_FALSE(found.statistics[0].moves);
  const auto maps = at::conv2d(x[0], value_of(*net, weights[0], "conv.weight"), {}, 1, 1);
  CHECK(at::allclose(found.statistics[0].mean[0], maps.mean(at::IntArrayRef{0, 2, 3}), 1e-4, 1e-6));
  CHECK(at::allclose(found.logits, as_model(net).forward(weights, x, {0, 5}, nullptr).logits, 1e-4, 1e-5));
}

TEST_CASE("a file that cannot train in training mode is refused with the key that helps") {
  made_program made;
  const auto flat = made.call("flatten.using_ints", {{"self", tensor_named("x")}, {"start_dim", number(1)}});
  const auto scaled = made.call("mul.Tensor", {{"self", flat}, {"other", made.parameter("w", at::ones({36}))}});
  made.call("alpha_dropout.default", {{"input", scaled}, {"p", real(0.5)}, {"train", flag(true)}});
  CHECK(load(made, {.trained = true}));
  const auto refused = load(made, {.trained = true, .training = true});
  REQUIRE_FALSE(refused);
  CHECK_THAT(refused.error().front().text,
             ContainsSubstring("alpha_dropout.default (v2) draws from LibTorch's generator in training") &&
                 ContainsSubstring("model.module_training = false"));
}

TEST_CASE("a failing program for a fixed number of rows is reported with dynamic_shapes as the remedy") {
  made_program made;
  made.call("view.default", {{"self", tensor_named("x")}, {"size", numbers({4, 36})}});
  made.changes = json::array({{{"op", "add"},
                               {"path", "/graph_module/graph/tensor_values/x"},
                               {"value", {{"sizes", json::array({number(4), number(1), number(6), number(6)})}}}}});
  const auto refused = load(made, {});
  REQUIRE_FALSE(refused);
  CHECK_THAT(refused.error().front().text,
             ContainsSubstring("it was exported for calls of 4 rows: give dynamic_shapes"));
}

TEST_CASE("a package of AOTInductor and a program of an earlier PyTorch are refused by name") {
  const scratch_folder folder;
  const auto error = [&](const std::string& entry) {
    write_file(folder.path() / "net.pt2", zip_of({{entry, "x"}}));
    const auto net = load_module(folder.path() / "net.pt2", {.input = image, .guards = {.sandbox = false}});
    return net ? std::string() : net.error().front().text;
  };
  CHECK_THAT(error("m/data/aotinductor/model/a.so"),
             ContainsSubstring(
                 "an AOTInductor package: machine code, which no run loads; expected an exported program (.pt2): "
                 "export the net by "));
  CHECK_THAT(error("serialized_exported_program.json"), ContainsSubstring("of an earlier PyTorch"));
}
