#include "runtime/data/data_sources.hpp"
#include <ATen/ATen.h> // before Catch2, whose CHECK must be the last definition

#include "tests/support/data_files.hpp"
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
using namespace mneme;
using namespace mneme::test;
using Catch::Matchers::ContainsSubstring;

namespace {

data_section made(std::vector<std::int64_t> shape, std::int64_t classes, std::int64_t rows) {
  return {.name = "synthetic", .shape = std::move(shape), .classes = classes, .rows = rows};
}

} // namespace

TEST_CASE("synthetic rows have the requested shape, and classes in turn", "[data]") {
  const auto features = load_data(made({5}, 3, 7), 1);
  REQUIRE(error_text(features) == "");
  CHECK(features->train.images.sizes() == at::IntArrayRef{7, 1, 1, 5});
  CHECK(features->train.labels == std::vector<std::int32_t>{0, 1, 2, 0, 1, 2, 0});
  CHECK(features->test.size() == 7);
  CHECK(features->classes == 3);
  const auto images = load_data(made({3, 4, 2}, 2, 1500), 1);
  CHECK(images->train.images.sizes() == at::IntArrayRef{1500, 3, 4, 2});
  CHECK(images->test.images.sizes() == at::IntArrayRef{1000, 3, 4, 2});
  CHECK(images->mean == std::vector{0.5, 0.5, 0.5});
}

TEST_CASE("a synthetic row depends on the seed and its number, not on the number of rows", "[data]") {
  const auto few = load_data(made({6}, 4, 10), 1), many = load_data(made({6}, 4, 2000), 1);
  CHECK(few->train.images.equal(many->train.images.narrow(0, 0, 10)));
  CHECK(few->test.images.equal(many->test.images.narrow(0, 0, 10)));
  CHECK_FALSE(few->train.images.equal(few->test.images));
  CHECK_FALSE(few->train.images.equal(load_data(made({6}, 4, 10), 2)->train.images));
  CHECK(few->train.images.equal(load_data(made({6}, 9, 10), 1)->train.images) == false); // row 4 is of class 4, not 0
}

TEST_CASE("synthetic rows are normal around the mean of their class with unit deviation", "[data]") {
  const auto data = load_data(made({16}, 2, 20'000), 3);
  const auto pixels = (data->train.images.flatten(1).to(at::kDouble) - 128.0) / 32.0; // [N, 16]
  const auto class_0 = pixels.slice(0, 0, at::nullopt, 2), class_1 = pixels.slice(0, 1, at::nullopt, 2);
  const auto mean = class_0.mean(0);
  const auto inside = mean.abs() < 1.2; // not affected by clipping at 4 deviations
  CHECK(inside.sum().item<std::int64_t>() >= 6);
  CHECK((class_0.std(0) - 1.0).abs().masked_select(inside).max().item<double>() < 0.03);
  CHECK((mean - class_1.mean(0)).abs().max().item<double>() > 0.5); // classes differ
  const auto test = (data->test.images.flatten(1).to(at::kDouble) - 128.0) / 32.0;
  CHECK((test.slice(0, 0, at::nullopt, 2).mean(0) - mean).abs().max().item<double>() < 0.25); // the same distribution
}

TEST_CASE("all invalid keys of synthetic data are reported together", "[data]") {
  const auto wrong = load_data(made({3, 4}, 0, 0), 1);
  REQUIRE_FALSE(wrong);
  CHECK(wrong.error().size() == 3);
  CHECK_THAT(error_text(wrong), ContainsSubstring("data.shape: error: found [3, 4]") &&
                                    ContainsSubstring("data.classes: error: found 0") &&
                                    ContainsSubstring("data.rows: error: found 0"));
  CHECK_THAT(error_text(load_data(made({1'000'000}, 10, 100'000'000), 1)), ContainsSubstring("expected fewer"));
}

TEST_CASE("row_values::zeros gives the same labels without drawing values") {
  const auto tokens = GENERATE(std::int64_t{0}, std::int64_t{9});
  auto data = made(tokens > 0 ? std::vector<std::int64_t>{5} : std::vector<std::int64_t>{2, 4, 4}, 3, 7);
  data.tokens = tokens;
  const auto drawn = load_data(data, 1), zeros = load_data(data, 1, row_values::zeros);
  REQUIRE(drawn.has_value());
  REQUIRE(zeros.has_value());
  for (const auto part : {&raw_data::train, &raw_data::test}) {
    const auto &expected = (*drawn).*part, &table = (*zeros).*part;
    CHECK(table.labels == expected.labels);
    CHECK(table.images.sizes() == expected.images.sizes());
    CHECK(table.images.scalar_type() == expected.images.scalar_type());
    CHECK(table.images.count_nonzero().item<std::int64_t>() == 0);
    CHECK(expected.images.count_nonzero().item<std::int64_t>() > 0);
  }
  CHECK(zeros->tokens == drawn->tokens);
  CHECK(zeros->mean == drawn->mean);
  CHECK(zeros->deviation == drawn->deviation);
}
