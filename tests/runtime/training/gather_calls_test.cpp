#include "runtime/training/gather_calls.hpp"
#include <ATen/ATen.h> // before Catch2, whose CHECK must be the last definition

#include "tests/support/grids.hpp"
#include "tests/support/learning.hpp"
#include "tests/support/reference_gather.hpp"
#include "tests/support/shown_rows.hpp"
using namespace mneme;
using namespace mneme::test;

TEST_CASE("the threads of a grid together gather a batch as gather() does", "[gather]") {
  for (const shape3 shape : {shape3{1, 1, 1}, {1, 1, 64}, {3, 8, 8}, {3, 9, 11}, {1, 28, 28}}) {
    const auto source = shown_data(shape);
    const auto tables = tables_on(at::kCPU, source);
    for (const bool augmented : {false, true}) {
      const auto batch = shown_rows(source, augmented);
      const auto packed = packed_rows(source, batch.rows, batch.augment, false);
      auto out = at::full({std::ssize(batch.rows), shape[0], shape[1], shape[2]}, 7.0F),
           twin = at::full_like(out, 8.0F);
      gather(source, batch.rows, batch.augment, twin.mutable_data_ptr<float>());
      const auto call = gather_call(source, tables, packed, out);
      CHECK(call.quads == (shape[0] * shape[1] * shape[2] % 4 == 0));
      for (const std::int64_t threads : {13, 512}) {
        out.fill_(7.0F);
        run_on_host(call, threads);
        CAPTURE(shape, augmented, threads);
        CHECK(largest_difference(out, twin) < 1e-6);
      }
    }
  }
}

TEST_CASE("a padding row is zero for all implementations of gather()", "[gather]") {
  const auto source = shown_data({1, 5, 5});
  const std::vector<std::int64_t> rows{3, padding_row, 3};
  auto out = at::ones({3, 1, 5, 5});
  gather(source, rows, {}, out.mutable_data_ptr<float>());
  CHECK(same_bits(out[1], at::zeros({1, 5, 5})));
  CHECK(same_bits(out[0], out[2]));
  CHECK(out[0].abs().max().item<float>() > 0);
  CHECK(largest_difference(reference_gather(source, rows, {}), out) < 1e-6);
  auto by_threads = at::ones({3, 1, 5, 5});
  run_on_host(gather_call(source, tables_on(at::kCPU, source), packed_rows(source, rows, {}, false), by_threads));
  CHECK(largest_difference(by_threads, out) < 1e-6);
}
