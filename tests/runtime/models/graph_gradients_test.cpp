#include "runtime/base/autograd_on.hpp"
#include "runtime/models/graph_gradients.hpp"
#include <ATen/ATen.h>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
using namespace mneme;

TEST_CASE("gradients of a graph replace a row's content or are added to it, scaled") {
  const bool adds = GENERATE(false, true);
  CAPTURE(adds);
  const autograd_on tracking;
  const at::AutoGradMode followed(true);
  const auto reached = at::tensor({2.0F, 3.0F}).requires_grad_(true), alone = at::ones({1}).requires_grad_(true);
  const auto square = reached * reached, tenfold = reached * 10.0, constant = at::ones({2});
  at::Tensor row = at::full({3}, 100.0F);
  graph_gradients({{.value = reached, .place = row.narrow(0, 0, 2)}, {.value = alone, .place = row.narrow(0, 2, 1)}},
                  {{.value = square, .gradient = at::tensor({1.0F, -1.0F})},
                   {.value = tenfold, .gradient = {}},
                   {.value = constant, .gradient = at::ones({2})}},
                  {.into = row, .scale = 0.5F, .add = adds});
  CHECK(at::equal(row, adds ? at::tensor({102.0F, 97.0F, 100.0F}) : at::tensor({2.0F, -3.0F, 0.0F})));
}

TEST_CASE("a row becomes zero if no result has a gradient") {
  const at::AutoGradMode followed(true);
  const auto leaf = at::ones({2}).requires_grad_(true);
  at::Tensor row = at::full({2}, 7.0F);
  graph_gradients({{.value = leaf, .place = row}}, {{.value = leaf * 2.0, .gradient = {}}}, {.into = row});
  CHECK(at::equal(row, at::zeros({2})));
}
