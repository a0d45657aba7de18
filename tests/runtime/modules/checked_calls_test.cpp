#include "runtime/modules/checked_calls.hpp"
#include "runtime/modules/load_module.hpp"
#include "tests/support/scratch.hpp"
#include "tests/support/script_modules.hpp"
#include <ATen/ATen.h>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <sstream>
#include <torch/csrc/jit/ir/ir.h>
#include <torch/csrc/jit/ir/irparser.h>
using namespace mneme;
using namespace mneme::test;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

namespace {

/// Module for rows [1, 6, 6] that executes `lines` only if a row has a number above 1000, which the probe's rows do not
/// have.
module_text changing_module(const std::string& lines) {
  return {
      .code =
          "def forward(self, x):\n    y = torch.flatten(x, 1) * self.weight\n    if bool(torch.max(x) > 1000.0):\n" +
          lines + "    return y\n",
      .parameters = {{"weight", at::ones({36})}}};
}

struct loaded_module {
  std::shared_ptr<const module_net> net{};
  std::string error{};
};

loaded_module load_written(const module_text& text, module_requirements demands = {}) {
  const scratch_folder folder;
  write_module(folder.path() / "net.pt", text);
  demands.input = {1, 6, 6};
  demands.classes = 5;
  demands.layers.sandbox = false;
  const auto net = load_module(folder.path() / "net.pt", demands);
  return net ? loaded_module{*net, ""} : loaded_module{nullptr, diagnostic_text(net.error().front())};
}

/// [1, P]
at::Tensor own_weights(const module_net& net) {
  auto flat = initial_weights(net, 1);
  net.put_own_values(flat);
  return flat.unsqueeze(0);
}

/// Features of 20 rows filled with `value`. @param learn true: keep what a gradient needs
at::Tensor features_of_rows(const module_net& net, double value, bool learn = false) {
  const at::NoGradGuard no_gradients;
  tape kept;
  const training_mode training;
  return static_cast<const model&>(net)
      .forward(own_weights(net), at::full({1, 20, 1, 6, 6}, value), {0, 5}, learn ? &kept : nullptr,
               learn ? &training : nullptr)
      .features[0];
}

struct changed_call {
  const char* title;
  std::string lines;
  const char* sentence;
};

std::shared_ptr<torch::jit::Graph> parse_graph(const char* text) {
  auto graph = std::make_shared<torch::jit::Graph>();
  torch::jit::parseIR(text, graph.get());
  return graph;
}

std::string text_of(const torch::jit::Graph& graph) {
  std::ostringstream text;
  text << graph;
  return text.str();
}

} // namespace

TEST_CASE("a call that violates a contract fails on the run's rows even if the probe did not make it") {
  const auto call = GENERATE(values<changed_call>({
      {"attention",
       "        q = x.view([-1, 1, 4, 9])\n        y = y + torch.sum(torch.scaled_dot_product_attention(q, "
       "q[:, :, 0:1], q))\n",
       "aten::scaled_dot_product_attention: keys are [16, 1, 1, 9] and values [16, 1, 4, 9]"},
      {"LSTM",
       "        z = torch.zeros([1, 1, 6])\n        a, h, c = torch.lstm(torch.flatten(x, 1).view([-1, 12, 3]), [z, "
       "z], [torch.zeros([24, 3]), torch.zeros([24, 6]), torch.zeros([24]), torch.zeros([24])], True, 1, 0.0, "
       "False, False, True)\n        y = y + torch.sum(a)\n",
       "aten::lstm: state 0 is Float [1, 1, 6]; expected Float [1, 16, 6]"},
      {"a stride",
       "        n = 1073741824 // x.size(1)\n        y = y + torch.sum(torch.conv2d(x, torch.ones([1, 1, 3, 3]), None, "
       "[n, n]))\n",
       "aten::conv2d: stride is [1073741824, 1073741824]; expected at most 4096"},
      {"a padding",
       "        n = 9223372036854775807 // x.size(1)\n        y = y + torch.sum(torch.replication_pad2d(x, [n, n, "
       "n, n]))\n",
       "aten::replication_pad2d: padding is [9223372036854775807"},
      {"a division of tensors",
       "        n = torch.full([2], 9223372036854775807, dtype=4) * -1 - x.size(1)\n        y = y + torch.div(n, -1, "
       "rounding_mode=\"trunc\")[0]\n",
       "aten::div: -9223372036854775808 is divided by -1"},
      {"a division of numbers",
       "        n = (-9223372036854775807 - x.size(1)) // (0 - x.size(1))\n        y = y + n\n",
       "aten::floordiv: -9223372036854775808 is divided by -1"},
      {"a remainder", "        y = y + x.size(1) % (x.size(1) - 1)\n",
       "aten::remainder: an integer is divided by zero"},
      {"a shift", "        y = y + (1 << (64 * x.size(1)))\n", "aten::__lshift__: a shift by 64 bits"},
      {"repeats",
       "        r = torch.full([5], 4611686018427387904, dtype=4)\n        y = y + torch.sum(torch.repeat_interleave("
       "r))\n",
       "aten::repeat_interleave: its result would have"},
      {"a range", "        y = y + torch.arange(4611686018427387904 * x.size(1))[0]\n",
       "aten::arange: its result would have 4611686018427387904 numbers"},
      {"a list", "        l = [1]\n        for i in range(60):\n            l = l + l\n        y = y + len(l)\n",
       "items or letters; expected at most 1048576"},
  }));
  CAPTURE(call.title);
  const auto loaded = load_written(changing_module(call.lines));
  REQUIRE(loaded.error.empty());
  CHECK_NOTHROW(features_of_rows(*loaded.net, 1.0));
  CHECK_THROWS_MATCHES(features_of_rows(*loaded.net, 2000.0), std::runtime_error,
                       MessageMatches(ContainsSubstring("net.pt': forward failed on rows 0 to 15 of 20: aten::") &&
                                      ContainsSubstring(call.sentence)));
}

TEST_CASE("calls of constants that violate a contract are not evaluated while a module is loaded") {
  const auto line = GENERATE(values<std::string>({
      "    y = torch.div(torch.full([1], 9223372036854775807, dtype=4) * -1 - 1, -1, rounding_mode=\"trunc\")\n",
      "    y = torch.full([1], (-9223372036854775807 - 1) // -1)\n",
      "    y = torch.repeat_interleave(torch.full([5], 4611686018427387904, dtype=4))\n",
      "    y = torch.replication_pad2d(torch.zeros([1, 1, 2, 2]), [9223372036854775807, 9223372036854775807, "
      "9223372036854775807, 9223372036854775807])\n",
  }));
  check_number_operators(); // before the test's compiler folds constants
  const auto loaded =
      load_written({.code = "def forward(self, x):\n" + line + "    return torch.flatten(x, 1) + torch.sum(y)\n"});
  CHECK_THAT(loaded.error, ContainsSubstring("forward failed on rows of shape [16, 1, 6, 6]: aten::"));
  CHECK_THAT(loaded.error, ContainsSubstring("expected") || ContainsSubstring("is divided by -1"));
}

TEST_CASE("constants are folded through operators with contracts, and rejected calls stay") {
  auto graph = parse_graph(R"IR(
graph(%x : Tensor):
  %seven : int = prim::Constant[value=7]()
  %two : int = prim::Constant[value=2]()
  %zero : int = prim::Constant[value=0]()
  %none : NoneType = prim::Constant()
  %three : int = aten::floordiv(%seven, %two)
  %one : int = aten::remainder(%three, %two)
  %range : Tensor = aten::arange(%three, %none, %none, %none, %none)
  %bad : int = aten::floordiv(%one, %zero)
  %sum : Tensor = aten::add(%x, %range, %one)
  %end : Tensor = aten::add(%sum, %bad, %one)
  return (%end))IR");
  fold_checked_constants(graph);
  const auto text = text_of(*graph);
  CAPTURE(text);
  CHECK(text.find("aten::remainder") == std::string::npos);
  CHECK(text.find("aten::arange") == std::string::npos);
  CHECK(text.find("aten::floordiv") == text.rfind("aten::floordiv"));
  CHECK(text.find("mneme::") == std::string::npos);
  insert_call_checks(*graph);
  CHECK(text_of(*graph).find("mneme::check_call") != std::string::npos);
}

TEST_CASE("a result with another shape on the run's rows is an error with both shapes") {
  const auto narrower = load_written(changing_module("        y = y[:, 0:30]\n"));
  CHECK_THROWS_MATCHES(features_of_rows(*narrower.net, 2000.0), std::runtime_error,
                       MessageMatches(ContainsSubstring(
                           "net.pt': forward returned another form on rows 0 to 15 of 20: Float [16, 30] on "
                           "cpu; expected Float [16, 36] on cpu, as in its trial")));
  for (const auto* const lines : {"        y = y[0:3]\n", "        y = torch.flatten(y)\n", "        y = y.to(7)\n"}) {
    const auto loaded = load_written(changing_module(lines));
    CHECK_THROWS_MATCHES(features_of_rows(*loaded.net, 2000.0), std::runtime_error,
                         MessageMatches(ContainsSubstring("expected Float [16, 36] on cpu, as in its trial")));
  }
}

TEST_CASE("buffers that are no parameters keep their values, whatever forward() writes on other rows") {
  auto text = changing_module("        self.calls.add_(1)\n        y = y + self.calls\n");
  text.buffers = {{"calls", at::zeros({1}, at::kLong)}};
  const auto loaded = load_written(text);
  REQUIRE(loaded.error.empty());
  const auto first = features_of_rows(*loaded.net, 2000.0);
  CHECK(at::equal(first, features_of_rows(*loaded.net, 2000.0)));
}
