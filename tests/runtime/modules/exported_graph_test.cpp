#include "runtime/modules/exported_graph.hpp"
#include "tests/support/module_files.hpp"
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <torch/csrc/autograd/autograd.h>
using namespace mneme;
using namespace mneme::test;
using Catch::Matchers::ContainsSubstring;

namespace {

const rng_key stream{.seed = 7, .index = 3};

exported_graph read(const made_program& program, const std::string& result = "") {
  auto graph = read_program(program.bytes(result));
  if (!graph)
    FAIL(graph.error());
  return *graph;
}

at::Tensor run(const made_program& program, const at::Tensor& rows, const module_mode& mode = {}) {
  const auto graph = read(program);
  return graph.run(rows, values_of(graph), mode);
}

std::string error_of(const made_program& program) {
  const auto graph = read_program(program.bytes());
  return graph ? "" : graph.error();
}

/// x [B, 6] through a batch norm with its counter, as torch.nn.BatchNorm1d is exported in training mode.
made_program norm_program() {
  made_program made;
  const auto weight = made.parameter("bn.weight", spread_numbers({6}) + 1.0);
  const auto bias = made.parameter("bn.bias", spread_numbers({6}, 0.3));
  const auto mean = made.buffer("bn.running_mean", spread_numbers({6}, 0.2));
  const auto variance = made.buffer("bn.running_var", spread_numbers({6}, 0.5) + 1.0);
  const auto counter = made.buffer("bn.num_batches_tracked", at::scalar_tensor(4, at::kLong));
  made.call("add_.Tensor", {{"self", counter}, {"other", number(1)}});
  made.call("batch_norm.default", {{"input", tensor_named("x")},
                                   {"weight", weight},
                                   {"bias", bias},
                                   {"running_mean", mean},
                                   {"running_var", variance},
                                   {"training", flag(true)},
                                   {"momentum", real(0.1)},
                                   {"eps", real(1e-5)},
                                   {"cudnn_enabled", flag(false)}});
  return made;
}

/// x through one call with a dropout rate, in training mode.
made_program dropout_program(const std::string& target) {
  made_program made;
  const auto twice = made.call("mul.Tensor", {{"self", tensor_named("x")}, {"other", number(2)}});
  made.call(target,
            {{target == "dropout_.default" ? "self" : "input", twice}, {"p", real(0.25)}, {"train", flag(true)}});
  return made;
}

made_program lstm_program(std::int64_t layers, double rate) {
  made_program made;
  std::vector<std::string> weights;
  for (std::int64_t layer = 0; layer < layers; ++layer)
    for (const auto& [name, shape] : std::vector<std::pair<std::string, std::vector<std::int64_t>>>{
             {"w_ih", {16, 4}}, {"w_hh", {16, 4}}, {"b_ih", {16}}, {"b_hh", {16}}}) {
      weights.push_back(name + std::to_string(layer));
      made.parameter(weights.back(), spread_numbers(shape));
    }
  const auto size = made.size_call("sym_size.int", {{"self", tensor_named("x")}, {"dim", number(0)}}, "rows");
  const json shape = {{"as_sym_ints", json::array({number(layers), {{"as_name", "rows"}}, number(4)})}};
  made.call("zeros.default", {{"size", shape}});
  const auto zeros = made.nodes.back()["name"].get<std::string>();
  made.call("lstm.input",
            {{"input", tensor_named("x")},
             {"hx", tensors_named({zeros, zeros})},
             {"params", tensors_named(weights)},
             {"has_biases", flag(true)},
             {"num_layers", number(layers)},
             {"dropout", real(rate)},
             {"train", flag(true)},
             {"bidirectional", flag(false)},
             {"batch_first", flag(true)}},
            {"lstm", "h", "c"});
  made.call("mul.Tensor", {{"self", tensor_named("lstm")}, {"other", number(1)}});
  return made;
}

} // namespace

TEST_CASE("calls of an exported program equal the operators") {
  made_program made;
  const auto weight = made.parameter("fc.weight", spread_numbers({5, 12}));
  made.parameter("unread", spread_numbers({3}));
  const auto size = made.size_call("sym_size.int", {{"self", tensor_named("x")}, {"dim", number(0)}}, "rows");
  const auto half = made.size_call("_operator.floordiv", {{"", size}, {"", number(2)}}, "half");
  made.call("chunk.default", {{"self", tensor_named("x")}, {"chunks", number(2)}, {"dim", number(1)}}, {"a", "b"},
            true);
  const auto joined = made.call("cat.default", {{"tensors", tensors_named({"b", "a"})}, {"dim", number(1)}});
  const auto scores = made.call("linear.default", {{"input", joined}, {"weight", weight}});
  made.call("mul.Tensor", {{"self", scores}, {"other", half}});
  const auto graph = read(made);
  REQUIRE(graph.tensors().size() == 1);
  CHECK(graph.tensors()[0].name == "fc.weight");
  CHECK_FALSE(graph.has_training_mode());
  const auto x = spread_numbers({7, 12}, 2.0);
  auto leaf = graph.tensors()[0].value.clone().requires_grad_(true);
  const auto found = graph.run(x, std::vector{leaf});
  const auto parts = x.chunk(2, 1);
  auto expected_leaf = leaf.detach().clone().requires_grad_(true);
  const auto expected = at::linear(at::cat({parts[1], parts[0]}, 1), expected_leaf) * 3;
  CHECK(at::equal(found, expected));
  CHECK(at::equal(torch::autograd::grad({found.sum()}, {leaf})[0],
                  torch::autograd::grad({expected.sum()}, {expected_leaf})[0]));
}

TEST_CASE("tied weights are one tensor with the first of their names") {
  made_program made;
  const auto embedding = made.parameter("wte.weight", spread_numbers({9, 4}));
  const auto head = made.parameter("head.weight", spread_numbers({9, 4}));
  made.tensors[1].stored_as = made.tensors[0].stored_as;
  const auto vectors = made.call("embedding.default", {{"weight", embedding}, {"indices", tensor_named("x")}});
  made.call("linear.default", {{"input", vectors}, {"weight", head}});
  const auto graph = read(made);
  REQUIRE(graph.tensors().size() == 1);
  CHECK(graph.tensors()[0].name == "wte.weight");
  const auto tokens = at::tensor({0, 8, 3}, at::kLong);
  const auto& weight = graph.tensors()[0].value;
  CHECK(at::equal(graph.run(tokens, std::vector{weight}), at::linear(at::embedding(weight, tokens), weight)));
}

TEST_CASE("a batch norm in training mode uses running statistics in evaluation and updates them in training") {
  const auto graph = read(norm_program());
  CHECK(graph.has_training_mode());
  REQUIRE(graph.tensors().size() == 4); // without its counter
  CHECK(graph.tensors()[2].moves);
  CHECK(graph.tensors()[3].moves);
  auto values = values_of(graph);
  const auto before = values_of(graph);
  const auto x = spread_numbers({5, 6}, 3.0);
  const auto by_running = (x - before[2]) / (before[3] + 1e-5).sqrt() * before[0] + before[1];
  CHECK(at::allclose(graph.run(x, values), by_running));
  CHECK(at::equal(values[2], before[2]));

  const auto mean = x.mean(0), variance = x.var(0, false);
  const auto by_rows = (x - mean) / (variance + 1e-5).sqrt() * before[0] + before[1];
  const module_mode training{.training = true};
  CHECK(at::allclose(graph.run(x, values, training), by_rows, 1e-4, 1e-5));
  CHECK(at::allclose(values[2], before[2] * 0.9 + mean * 0.1));
  CHECK(at::allclose(values[3], before[3] * 0.9 + variance * 1.25 * 0.1)); // unbiased: 5 / 4

  values = values_of(graph);
  static_cast<void>(graph.run(x, values, {.training = true, .running_stats_updates = 2}));
  CHECK(at::allclose(values[2], before[2] * 0.81 + mean * 0.19));

  values = values_of(graph);
  const std::vector<bool> still{false, false, true, true};
  CHECK(at::allclose(graph.run(x, values, {.training = true, .still = still}), by_running));
  CHECK(at::equal(values[3], before[3]));

  static_cast<void>(graph.run(x.narrow(0, 0, 1), values, training)); // one value per channel
  CHECK(at::equal(values[3], before[3]));

  std::vector<module_statistics> seen;
  static_cast<void>(graph.run(x, values, {.training = true, .statistics = &seen}));
  REQUIRE(seen.size() == 1);
  CHECK(at::allclose(seen[0].batch_variance, variance));
  CHECK(seen[0].values == 5);
  CHECK(at::equal(values[2], before[2]));
}

TEST_CASE("dropout draws from the key of the pass, and only in training") {
  const std::string target = GENERATE("dropout.default", "dropout_.default", "feature_dropout.default");
  CAPTURE(target);
  const auto program = dropout_program(target);
  const auto x = at::ones({64, 8, 5});
  CHECK(at::equal(run(program, x), 2 * x));
  const module_mode training{.training = true, .stream = stream};
  const auto dropped = run(program, x, training);
  CHECK(at::equal(dropped, run(program, x, training)));
  CHECK_FALSE(at::equal(dropped, run(program, x, {.training = true, .stream = {.seed = 8}})));
  CHECK(at::allclose(at::where(dropped != 0, dropped, 8.0 / 3.0), at::full({1}, 8.0 / 3.0)));
  const auto share = (dropped != 0).to(at::kFloat).mean().item<double>();
  CHECK(std::abs(share - 0.75) < 0.07);
  const auto by_channel = (dropped != 0).to(at::kFloat).mean({2});
  const bool are_whole = (by_channel == 0).logical_or(by_channel == 1).all().item<bool>();
  CHECK(are_whole == target.starts_with("feature"));
  CHECK(at::equal(dropped.narrow(0, 0, 9), run(program, x.narrow(0, 0, 9), training))); // more rows do not change them
}

TEST_CASE("an LSTM drops values between its layers by the key of the pass") {
  const auto x = spread_numbers({3, 5, 4}, 2.0);
  const auto graph = read(lstm_program(3, 0.5));
  CHECK(graph.draws() == 2);
  const auto plain = read(lstm_program(3, 0.0));
  CHECK(plain.draws() == 0);
  const auto values = values_of(graph);
  const module_mode training{.training = true, .stream = stream};
  CHECK(at::equal(graph.run(x, values), plain.run(x, values)));
  CHECK(at::equal(plain.run(x, values, training), plain.run(x, values)));
  const auto dropped = graph.run(x, values, training);
  CHECK(at::equal(dropped, graph.run(x, values, training)));
  CHECK_FALSE(at::allclose(dropped, graph.run(x, values)));
  const auto nothing = read(lstm_program(3, 1e-7)); // by layers, with masks of ones
  CHECK(nothing.draws() == 2);
  CHECK(at::allclose(nothing.run(x, values, training), plain.run(x, values), 1e-4, 1e-6));
}

TEST_CASE("attention drops weights by the key of the pass") {
  const auto program = [](double rate) {
    made_program made;
    const auto x = tensor_named("x");
    made.call("scaled_dot_product_attention.default",
              {{"query", x}, {"key", x}, {"value", x}, {"dropout_p", real(rate)}, {"is_causal", flag(true)}});
    return made;
  };
  const auto x = spread_numbers({2, 3, 6, 4}, 3.0);
  const module_mode training{.training = true, .stream = stream};
  const auto plain = run(program(0.0), x);
  CHECK(at::equal(run(program(0.4), x), plain));
  CHECK(at::allclose(run(program(1e-7), x, training), plain, 1e-4, 1e-6));
  const auto dropped = run(program(0.4), x, training);
  CHECK(at::equal(dropped, run(program(0.4), x, training)));
  CHECK_FALSE(at::allclose(dropped, plain, 1e-2));
}

TEST_CASE("stochastic depth leaves values unchanged in evaluation") {
  made_program made;
  const auto noise = made.call("empty.memory_format", {{"size", numbers({4, 1})}});
  const auto drawn = made.call("bernoulli_.float", {{"self", noise}, {"p", real(0.8)}});
  const auto scaled = made.call("div_.Scalar", {{"self", drawn}, {"other", real(0.8)}});
  made.call("mul.Tensor", {{"self", tensor_named("x")}, {"other", scaled}});
  const auto x = spread_numbers({4, 3});
  CHECK(at::equal(run(made, x), x));
  const auto found = run(made, x, {.training = true, .stream = stream});
  const auto ratio = found / x;
  CHECK(((ratio.abs() < 1e-6).logical_or((ratio - 1.25).abs() < 1e-6)).all().item<bool>());
}

TEST_CASE("uninitialized memory is zero") {
  made_program made;
  const auto fresh = made.call("empty.memory_format", {{"size", numbers({1, 3})}});
  made.call("add.Tensor", {{"self", tensor_named("x")}, {"other", fresh}});
  const auto x = spread_numbers({4, 3});
  CHECK(at::equal(run(made, x), x));
}

TEST_CASE("a pass stops before a call that violates its contract or exceeds the limit of computation") {
  const auto failure = [](const made_program& program, const at::Tensor& x) {
    const auto graph = read(program);
    try {
      static_cast<void>(graph.run(x, values_of(graph)));
    } catch (const std::exception& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  made_program attention;
  const auto keys = attention.call(
      "slice.Tensor", {{"self", tensor_named("x")}, {"dim", number(1)}, {"start", number(0)}, {"end", number(1)}});
  attention.call("scaled_dot_product_attention.default",
                 {{"query", tensor_named("x")}, {"key", keys}, {"value", tensor_named("x")}});
  CHECK_THAT(failure(attention, at::ones({2, 9, 4})), ContainsSubstring("keys are [2, 1, 4] and values [2, 9, 4]"));
  made_program size;
  const auto rows = size.size_call("sym_size.int", {{"self", tensor_named("x")}, {"dim", number(0)}}, "rows");
  const auto none = size.size_call("_operator.sub", {{"", rows}, {"", number(2)}}, "none");
  const auto bad = size.size_call("_operator.floordiv", {{"", rows}, {"", none}}, "bad");
  size.call("mul.Tensor", {{"self", tensor_named("x")}, {"other", bad}});
  CHECK_THAT(failure(size, at::ones({2, 9})), ContainsSubstring("a size of 2 is divided by 0"));
  made_program work;
  const auto weight = work.parameter("w", at::ones({1, 1, 1, 1}));
  const auto large =
      work.call("expand.default", {{"self", tensor_named("x")}, {"size", numbers({1, 1, 40000, 40000})}});
  const auto wide = work.call("expand.default", {{"self", weight}, {"size", numbers({1000, 1, 1, 1})}});
  work.call("conv2d.default", {{"input", large}, {"weight", wide}});
  CHECK_THAT(failure(work, at::ones({1, 1, 1, 1})), ContainsSubstring("more than 1e+12 multiplications for a row"));
}

TEST_CASE("a forbidden call of a program is refused while the program is read") {
  const auto x = tensor_named("x");
  const auto error = [](const std::string& target, const std::vector<std::pair<std::string, json>>& given,
                        const std::string& result = "v0") {
    made_program made;
    made.call(target, given, {result});
    return error_of(made);
  };
  const json path = {{"as_string", "/etc/passwd"}};
  CHECK_THAT(error("from_file.default", {{"filename", path}}),
             ContainsSubstring("torch.ops.aten.from_file.default (v0): it is none of the operators"));
  CHECK_THAT(error("_operator.pow", {{"", number(2)}, {"", number(2)}}), ContainsSubstring("none of the operators"));
  CHECK_THAT(error("linear.default", {{"input", x}}), ContainsSubstring("argument 'weight' is missing"));
  CHECK_THAT(error("relu.default", {{"self", x}, {"out", x}}), ContainsSubstring("it has no argument 'out'"));
  CHECK_THAT(error("relu.default", {{"self", x}, {"self", x}}), ContainsSubstring("an argument is given twice"));
  CHECK_THAT(error("relu.nothing", {{"self", x}}), ContainsSubstring("LibTorch 2.11 does not have this operator"));
  CHECK_THAT(error("flatten.using_ints", {{"self", x}, {"start_dim", real(1)}}),
             ContainsSubstring("argument 'start_dim' is as_float; expected int"));
  CHECK_THAT(error("expand.default", {{"self", x}, {"size", numbers({1 << 30, 1})}}),
             ContainsSubstring("argument 'size' is 1073741824; expected at most 268435456"));
  CHECK_THAT(error("relu.default", {{"self", tensor_named("v7")}}),
             ContainsSubstring("'v7' is read before it is computed"));
  CHECK_THAT(error("relu.default", {{"self", x}}, "x"), ContainsSubstring("'x' is computed twice"));
  CHECK_THAT(error("rand.default", {{"size", numbers({2})}}),
             ContainsSubstring("it draws random numbers in evaluation mode, too"));
  CHECK_THAT(error("masked_select.default", {{"self", x}, {"mask", x}}),
             ContainsSubstring("the form of its result depends on values"));
  CHECK_THAT(error("unbind.int", {{"self", x}}), ContainsSubstring("its result is not a list of tensors"));
  made_program written;
  written.call("relu_.default", {{"self", written.parameter("w", at::ones({2}))}});
  CHECK_THAT(error_of(written), ContainsSubstring("it writes to a parameter"));
  made_program counting;
  const auto counter = counting.buffer("n", at::scalar_tensor(1, at::kLong));
  const auto more = counting.call("add_.Tensor", {{"self", counter}, {"other", number(1)}});
  counting.call("mul.Tensor", {{"self", x}, {"other", more}});
  CHECK_THAT(error_of(counting),
             ContainsSubstring("a result is read that depends on how often training has called it"));
}

TEST_CASE("a counter is removed with its updates unless another call reads it") {
  const auto x = tensor_named("x");
  made_program twice; // a layer that is called twice counts twice
  const auto counter = twice.buffer("n", at::scalar_tensor(1, at::kLong));
  for (int i = 0; i < 2; ++i)
    twice.call("add_.Tensor", {{"self", counter}, {"other", number(1)}});
  twice.call("relu.default", {{"self", x}});
  CHECK(read(twice).tensors().empty());
  CHECK_FALSE(read(twice).has_training_mode());

  made_program copied; // a buffer that receives the count
  const auto count = copied.buffer("n", at::scalar_tensor(1, at::kLong));
  const auto more = copied.call("add_.Tensor", {{"self", count}, {"other", number(1)}});
  copied.call("copy_.default", {{"self", copied.buffer("mean", at::zeros({2}))}, {"src", more}});
  copied.call("relu.default", {{"self", x}});
  CHECK_THAT(error_of(copied),
             ContainsSubstring("it updates 'n', which is Long; expected float32, or a counter that no "
                               "other call reads"));

  made_program averaged; // only the buffer that is written changes
  const auto mean = averaged.buffer("mean", at::zeros({2})), rate = averaged.buffer("rate", at::full({2}, 0.5F));
  averaged.call("mul_.Tensor", {{"self", mean}, {"other", rate}});
  averaged.call("add.Tensor", {{"self", x}, {"other", mean}});
  const auto graph = read(averaged);
  REQUIRE(graph.tensors().size() == 2);
  CHECK(graph.tensors()[0].moves);
  CHECK_FALSE(graph.tensors()[1].moves);
}

TEST_CASE("a program of another format is refused with the line that exports it") {
  const auto error = [](const std::string& operation, const std::string& path, const json& value) {
    made_program made;
    made.call("relu.default", {{"self", tensor_named("x")}});
    made.changes = json::array({{{"op", operation}, {"path", path}, {"value", value}}});
    return error_of(made);
  };
  CHECK_THAT(error("replace", "/verifiers", json::array()),
             ContainsSubstring("was decomposed for inference (run_decompositions); expected the training IR that "
                               "torch.export.export returns: torch.export.save("));
  CHECK_THAT(error("replace", "/schema_version/major", 9), ContainsSubstring("its schema has version 9; expected 8"));
  const std::string outputs = "/graph_module/signature/output_specs/-",
                    inputs = "/graph_module/signature/input_specs/-";
  CHECK_THAT(error("add", outputs, {{"user_output", {{"arg", tensor_named("x")}}}}),
             ContainsSubstring("forward returns 2 tensors (v0, x); expected one: export a module whose forward"));
  CHECK_THAT(error("add", outputs, {{"buffer_mutation", {{"arg", tensor_named("x")}, {"buffer_name", "b"}}}}),
             ContainsSubstring("in functional form (buffer_mutation), as run_decompositions() makes it"));
  CHECK_THAT(error("add", inputs, {{"user_input", {{"arg", tensor_named("y")}}}}),
             ContainsSubstring("forward takes several inputs"));
  CHECK_THAT(error("replace", "/graph_module/graph/nodes", 3), ContainsSubstring("'nodes' is not a list"));
  CHECK_THAT(error("remove", "/graph_module/signature", {}), ContainsSubstring("the field 'signature' is missing"));
}

TEST_CASE("a program of PyTorch 2.8, whose weights are pickled, is refused with the versions that are read") {
  made_program made;
  made.call("relu.default", {{"self", tensor_named("x")}});
  auto entries = made.entries();
  std::erase_if(entries, [](const auto& entry) { return entry.first.ends_with("_config.json"); });
  entries.emplace_back("model/data/weights/model.pt", "PK");
  const auto graph = read_program(zip_of(entries));
  REQUIRE_FALSE(graph);
  CHECK_THAT(graph.error(), ContainsSubstring("PyTorch 2.8 and earlier") && ContainsSubstring("2.9 or later"));
}

TEST_CASE("tensors must lie within their bytes, and pickles are not opened") {
  made_program made;
  const auto weight = made.parameter("w", spread_numbers({4, 3}));
  made.call("mul.Tensor", {{"self", tensor_named("x")}, {"other", weight}});
  const auto error = [&](const std::string& path, const json& value) {
    auto entries = made.entries();
    for (auto& [name, content] : entries)
      if (name.ends_with("weights_config.json"))
        content =
            json::parse(content).patch(json::array({{{"op", "replace"}, {"path", path}, {"value", value}}})).dump();
    const auto graph = read_program(zip_of(entries));
    return graph ? std::string() : graph.error();
  };
  const std::string meta = "/config/w/tensor_meta";
  CHECK(error("/config/w/use_pickle", false).empty());
  CHECK_THAT(error("/config/w/use_pickle", true), ContainsSubstring("tensor 'w': it is pickled"));
  CHECK_THAT(error("/config/w/path_name", "../../etc/passwd"), ContainsSubstring("the archive has no entry"));
  CHECK_THAT(error(meta + "/sizes/0/as_int", 5), ContainsSubstring("it lies outside of its 48 bytes"));
  CHECK_THAT(error(meta + "/strides/0/as_int", 4), ContainsSubstring("it lies outside"));
  CHECK_THAT(error(meta + "/storage_offset/as_int", 1), ContainsSubstring("it lies outside"));
  CHECK_THAT(error(meta + "/strides/0/as_int", std::int64_t{1} << 62), ContainsSubstring("it lies outside"));
  CHECK_THAT(error(meta + "/sizes/0/as_int", -1), ContainsSubstring("has -1"));
  CHECK_THAT(error(meta + "/dtype", 11), ContainsSubstring("a type that modules may not have"));
}
