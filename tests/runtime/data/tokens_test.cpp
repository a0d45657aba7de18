// Token rows, from a data source to the input of jobs.
#include "runtime/data/data_sources.hpp"
#include "runtime/data/task_stream.hpp"
#include <ATen/ATen.h> // before Catch2, whose CHECK must be the last definition

#include <catch2/catch_test_macros.hpp>
using namespace mneme;

namespace {

scenario made_text() {
  scenario settings;
  settings.data.name = "synthetic";
  settings.data.shape = {6};
  settings.data.tokens = 9;
  settings.data.classes = 4;
  settings.data.rows = 4000;
  settings.tasks.count = 2;
  return settings;
}

} // namespace

TEST_CASE("synthetic text has tokens below the vocabulary, half of them from the class's own", "[data]") {
  const auto settings = made_text();
  const auto raw = load_data(settings.data, 3).value();
  CHECK(raw.tokens == 9);
  const auto& images = raw.train.images; // [N, 1, 1, T]
  CHECK(images.scalar_type() == at::kInt);
  CHECK(images.sizes() == at::IntArrayRef{4000, 1, 1, 6});
  CHECK(images.min().item<int>() == 0);
  CHECK(images.max().item<int>() == 8);
  // A class has 1,000 rows. About 1/2 + 1/2 * 1/9 of them have the class's token at a position: 556, deviation 16.
  for (std::int64_t label = 0; label < 4; ++label)
    for (std::int64_t place = 0; place < 6; ++place) {
      const auto column = images.flatten(1).slice(0, label, std::nullopt, 4).select(1, place).to(at::kLong);
      const auto most = at::bincount(column).max().item<std::int64_t>();
      CHECK(std::abs(most - 556) < 80);
    }
  CHECK(at::equal(images.narrow(0, 0, 10), load_data(settings.data, 3)->train.images.narrow(0, 0, 10)));
  CHECK_FALSE(at::equal(images.narrow(0, 0, 10), load_data(settings.data, 4)->train.images.narrow(0, 0, 10)));
}

TEST_CASE("tokens reach jobs as integers without normalization", "[data]") {
  const auto settings = made_text();
  const auto raw = load_data(settings.data, 3).value();
  const auto tasks = make_task_stream(settings, raw).value();
  CHECK(tasks.tokens == 9);
  CHECK(tasks.train->shape() == std::array<std::int64_t, 3>{1, 1, 6});
  CHECK_FALSE(tasks.train->images.defined());
  CHECK(tasks.train->vectors.scalar_type() == at::kFloat);
  CHECK(at::equal(tasks.train->vectors.to(at::kInt), raw.train.images.flatten(1)));
  auto wrong = settings.data;
  wrong.shape = {1, 2, 3};
  CHECK(load_data(wrong, 3).error().at(0).text == "found [1, 2, 3]; expected [tokens of a row]");
}
