#include "runtime/modules/contracts/operator_work.hpp"
#include "tests/support/operator_calls.hpp"
#include <ATen/ATen.h>
#include <catch2/catch_test_macros.hpp>
using namespace mneme;
using namespace mneme::test;

namespace {

double work(const std::string& name, const named_arguments& given) {
  const auto& schema = schema_of_operator(name, "");
  const auto arguments = arguments_of(schema, given);
  return work_of_call({schema, arguments});
}

double product(at::IntArrayRef a, at::IntArrayRef b) {
  return work("aten::matmul", {{"self", at::zeros({1}).expand(a)}, {"other", at::zeros({1}).expand(b)}});
}

} // namespace

TEST_CASE("work of a matrix product is its number of matrices, with axes broadcast, times rows, columns and length") {
  CHECK(product({30, 40}, {40, 50}) == 30 * 40 * 50);
  CHECK(product({7, 30, 40}, {7, 40, 50}) == 7 * 30 * 40 * 50);
  CHECK(product({7, 30, 40}, {40, 50}) == 7 * 30 * 40 * 50);
  CHECK(product({30, 40}, {7, 40, 50}) == 7 * 30 * 40 * 50);
  CHECK(product({2, 8, 30, 40}, {2, 8, 40, 50}) == 2 * 8 * 30 * 40 * 50);
  CHECK(product({2, 1, 30, 40}, {1, 8, 40, 50}) == 2 * 8 * 30 * 40 * 50);
  CHECK(product({2, 1, 3, 30, 40}, {4, 1, 40, 50}) == 2 * 4 * 3 * 30 * 40 * 50);
  CHECK(product({2, 1, 1, 30, 40}, {1, 5, 6, 40, 50}) == 2 * 5 * 6 * 30 * 40 * 50);
  // With a vector the estimate is the larger number, that of the operands' elements.
  CHECK(product({7, 30, 400}, {400}) == 7 * 30 * 400 + 400);
  CHECK(product({400}, {400, 50}) == 400 * 50 + 400);
  CHECK(product({400}, {400}) == 800);
  CHECK(work("aten::inner", {{"self", at::zeros({3, 40})}, {"other", at::zeros({5, 40})}}) >= 3 * 5 * 40);
  CHECK(
      work("aten::addmm", {{"self", at::zeros({50})}, {"mat1", at::zeros({30, 40})}, {"mat2", at::zeros({40, 50})}}) ==
      30 * 40 * 50);
}

TEST_CASE("work of an adaptive pool is its results times their windows") {
  const auto pooled = [](at::IntArrayRef rows, std::vector<std::int64_t> sides) {
    return work("aten::adaptive_avg_pool2d",
                {{"self", at::zeros({1}).expand(rows)}, {"output_size", std::move(sides)}});
  };
  CHECK(pooled({2, 4, 8, 8}, {1, 1}) == 4.0 * 2 * 4 * 9 * 9);
  CHECK(pooled({2, 4, 1000, 9}, {3, 1048576}) == 4.0 * 2 * 4 * 3 * 335 * 1048576 * 2);
}

TEST_CASE("work of a bilinear layer grows with its features, which LibTorch computes one by one") {
  const auto bilinear = [](std::int64_t features) {
    return work("aten::bilinear", {{"input1", at::zeros({2, 3})},
                                   {"input2", at::zeros({2, 4})},
                                   {"weight", at::zeros({1}).expand({features, 3, 4})}});
  };
  CHECK(bilinear(40) == 6.0 * 8 * 12 * 40 + 40e7);
  CHECK(bilinear(1 << 20) > 1e13);
}
