#include "runtime/modules/module_net.hpp"
#include "runtime/modules/native_graph.hpp"
#include "tests/support/scratch.hpp"
#include "tests/support/script_modules.hpp"
#include <ATen/ATen.h>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <cstdlib>
using namespace mneme;
using namespace mneme::test;

namespace {

constexpr std::int64_t rows_of_call = 16, width = 64;

/// The net of tests/support/native_net.cpp: 64 numbers of a row, times 2.5.
native_graph compiled() {
  const scratch_folder folder;
  const auto library = folder.path() / "net.so";
  const auto command = "g++ -std=c++20 -O1 -shared -fPIC " MNEME_SOURCE_DIR "/tests/support/native_net.cpp -o '" +
                       library.string() + "'";
  REQUIRE(std::system(command.c_str()) == 0);
  auto graph = native_graph::load({.library = content_of(library), .rows_of_call = rows_of_call});
  if (!graph)
    FAIL(graph.error().front());
  return std::move(*graph);
}

} // namespace

TEST_CASE("compiled code computes, tells its constants, and has no gradients") {
  const auto graph = compiled();
  const auto rows = spread_numbers({rows_of_call, 3, 10, 10});
  const auto expected = rows.flatten(1).narrow(1, 0, width) * 2.5;
  CHECK(at::equal(graph.run(rows, {}), expected));
  REQUIRE(graph.tensors().size() == 2);
  CHECK((graph.tensors()[0].name == "calls" && graph.tensors()[0].value.item<float>() == 0.0F));
  CHECK((graph.tensors()[1].name == "scale" && graph.tensors()[1].value.item<float>() == 2.5F));
  CHECK(graph.overwritten().empty());
  CHECK_THROWS_WITH(graph.run(rows.clone().requires_grad_(true), {}),
                    "a gradient is asked for through the compiled code of a module, which has none; expected a "
                    "TorchScript module");
}

TEST_CASE("calls of compiled code are filled up, alone, in training, and as a function") {
  const module_net net(
      std::make_shared<const native_graph>(compiled()),
      {.digest = "d", .input = {3, 10, 10}, .width = width, .classes = 5, .rows_at_once = rows_of_call});
  CHECK(net.size() == 2 + 5 * width + 5);
  auto flat = initial_weights(net, 1);
  net.put_own_values(flat);
  CHECK(net.replaced_constant(flat).empty());
  const auto x = spread_numbers({1, 21, 3, 10, 10});
  const auto expected = x[0].flatten(1).narrow(1, 0, width) * 2.5;
  tape kept;
  kept.for_backward = true;
  const training_mode training{};
  CHECK(at::equal(net.forward(flat.unsqueeze(0), x, {0, 5}, nullptr, nullptr).features[0], expected));
  CHECK(at::equal(net.forward(flat.unsqueeze(0), x, {0, 5}, &kept, &training).features[0], expected));
  CHECK(at::equal(net.differentiable(flat.unsqueeze(0), x, {0, 5}, {}).features[0], expected));
  flat[1] = 1.0F; // scale
  CHECK(net.replaced_constant(flat) == "scale");
}
