#include "runtime/base/triangle.hpp"
#include "tests/support/reference_algebra.hpp"
#include <catch2/catch_test_macros.hpp>
using namespace mneme;
using namespace mneme::test;

TEST_CASE("a triangle stores a symmetric matrix in little more than half of its numbers", "[triangle]") {
  CHECK(triangle_size(0) == 0);
  CHECK(triangle_size(3) == 9); // one panel
  CHECK(triangle_size(600) == 256 * 256 + 256 * 512 + 88 * 600);
  CHECK(triangle_size(5000) < 5000 * 5000 * 53 / 100);
  for (const std::int64_t width : {1, 3, 256, 257, 600}) {
    CHECK(triangle_width(triangle_size(width)) == width);
    const matrix half = drawn_matrix(width, width, 1), symmetric = half + half.transpose();
    CHECK(matrix_of(square(triangle_of(tensor_of(symmetric)), width)) == symmetric);
  }
}

TEST_CASE("adding rows to a triangle adds their Gram matrix", "[triangle]") {
  const matrix rows = drawn_matrix(70, 300, 1), more = drawn_matrix(5, 300, 2);
  auto flat = at::zeros({triangle_size(300)}, at::kDouble);
  add_gram(flat, tensor_of(rows));
  add_gram(flat, tensor_of(more));
  CHECK(relative_difference(square(flat, 300), gram_of(rows) + gram_of(more)) < 1e-14);
}
