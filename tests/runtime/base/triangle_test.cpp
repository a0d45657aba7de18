#include "runtime/base/triangle.hpp"
#include <ATen/ATen.h>
#include <catch2/catch_test_macros.hpp>
using namespace mneme;

TEST_CASE("a triangle holds a symmetric matrix in a little more than half of its numbers", "[triangle]") {
  CHECK(triangle_size(0) == 0);
  CHECK(triangle_size(3) == 9); // one panel
  CHECK(triangle_size(600) == 256 * 256 + 256 * 512 + 88 * 600);
  CHECK(triangle_size(5000) < 5000 * 5000 * 53 / 100);
  for (const std::int64_t width : {1, 3, 256, 257, 600}) {
    CHECK(triangle_width(triangle_size(width)) == width);
    const auto half = at::randn({width, width}, at::kDouble);
    const auto matrix = half + half.t();
    CHECK(at::equal(square(triangle_of(matrix), width), matrix));
  }
}

TEST_CASE("rows are added to the triangle of their Gram matrix", "[triangle]") {
  const auto rows = at::randn({70, 300}, at::kDouble), more = at::randn({5, 300}, at::kDouble);
  auto flat = at::zeros({triangle_size(300)}, at::kDouble);
  add_gram(flat, rows);
  add_gram(flat, more);
  CHECK(at::allclose(square(flat, 300), rows.t().mm(rows) + more.t().mm(more), 1e-13, 1e-12));
}
