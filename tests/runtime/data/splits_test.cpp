#include "runtime/data/splits.hpp"
#include <ATen/ATen.h> // before Catch2, whose CHECK must be the last definition

#include "tests/support/data_files.hpp"
using namespace mneme;
using namespace mneme::test;

namespace {

using labels = std::vector<std::int32_t>;

/// One-pixel images with value i in row i.
image_table table_of(labels classes, labels domains = {}) {
  const auto rows = std::ssize(classes);
  return {.images = at::arange(rows, at::kByte).reshape({rows, 1, 1, 1}),
          .labels = std::move(classes),
          .domains = std::move(domains)};
}
labels pixels_of(const image_table& table) {
  const auto flat = table.images.flatten();
  labels values;
  for (std::int64_t i = 0; i < flat.size(0); ++i)
    values.push_back(flat[i].item<std::uint8_t>());
  return values;
}

} // namespace

TEST_CASE("the row limit keeps the first rows of a file, and the class limit the first of each class", "[data]") {
  const labels classes{0, 0, 1, 0, 1, 2, 2, 2};
  CHECK(pixels_of(limited(table_of(classes), {.rows = 3}, 3)) == labels{0, 1, 2});
  CHECK(pixels_of(limited(table_of(classes), {.per_class = 2}, 3)) == labels{0, 1, 2, 4, 5, 6});
  const auto both = limited(table_of(classes), {.rows = 6, .per_class = 2}, 3);
  CHECK(pixels_of(both) == labels{0, 1, 2, 4, 5});
  CHECK(both.labels == labels{0, 0, 1, 1, 2});
}

TEST_CASE("limits of 0, or above the number of rows, keep all rows", "[data]") {
  const labels classes{0, 1, 1};
  CHECK(pixels_of(limited(table_of(classes), {}, 2)) == labels{0, 1, 2});
  CHECK(pixels_of(limited(table_of(classes), {.rows = 7, .per_class = 5}, 2)) == labels{0, 1, 2});
}

TEST_CASE("limits apply to each domain separately", "[data]") {
  const labels classes{0, 0, 1, 0, 0, 1}, domains{0, 0, 0, 1, 1, 1};
  const auto rows = limited(table_of(classes, domains), {.rows = 2}, 2);
  CHECK(pixels_of(rows) == labels{0, 1, 3, 4});
  CHECK(rows.domains == labels{0, 0, 1, 1});
  CHECK(pixels_of(limited(table_of(classes, domains), {.per_class = 1}, 2)) == labels{0, 2, 3, 5});
}

TEST_CASE("a filter ends reading when no later row can be kept", "[data]") {
  row_filter rows({.rows = 2}, 3);
  CHECK(rows.keep(0));
  CHECK_FALSE(rows.done());
  CHECK(rows.keep(0));
  CHECK(rows.done());
  row_filter classes({.per_class = 1}, 2);
  CHECK(classes.keep(1));
  CHECK_FALSE(classes.keep(1));
  CHECK_FALSE(classes.done());
  CHECK(classes.keep(0));
  CHECK(classes.done());
}

TEST_CASE("errors of both splits are reported", "[data]") {
  const expected<image_table> bad_train = failed("train", "a"), bad_test = failed("test", "b");
  CHECK(error_text(with_splits({}, bad_train, bad_test)) == "train: error: a\ntest: error: b\n");
  CHECK(error_text(with_splits({}, table_of({0}), bad_test)) == "test: error: b\n");
}

TEST_CASE("kept rows retain their numbers in the file", "[data]") {
  const auto once = limited(table_of({0, 0, 1, 0, 1, 1}), {.per_class = 2}, 2);
  CHECK(once.file_rows == std::vector<std::int64_t>{0, 1, 2, 4});
  CHECK(limited(once, {.per_class = 1}, 2).file_rows == std::vector<std::int64_t>{0, 2});
  CHECK(limited(table_of({0, 1}), {}, 2).file_rows.empty());
}
