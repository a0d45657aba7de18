#include "runtime/data/generated_row_store.hpp"
#include <ATen/ATen.h> // before Catch2, whose CHECK must be the last definition

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <thread>
using namespace mneme;
using Catch::Matchers::Message;

namespace {

row_format format_of_run() { return {.scale = {2.0F, 3.0F}, .shift = {-1.0F, 0.5F}, .classes = 3}; }

at::Tensor bytes() { return at::arange(12, at::kByte).view({3, 2, 1, 2}); }

at::Tensor labels_of(const std::vector<std::int64_t>& values) { return at::tensor(values, at::kLong); }

} // namespace

TEST_CASE("bytes become rows with the run's normalization, floats become unnormalized rows") {
  generated_row_store store(format_of_run());
  const auto rows = store.rows_of(bytes(), labels_of({2, 0, 1}));
  CHECK(rows->files_rows() == 3);
  CHECK(rows->shape() == std::array<std::int64_t, 3>{2, 1, 2});
  CHECK(rows->labels == std::vector<std::int32_t>{2, 0, 1});
  CHECK((rows->scale == std::vector<float>{2.0F, 3.0F} && rows->shift == std::vector<float>{-1.0F, 0.5F}));
  CHECK(at::equal(rows->images, bytes()));
  CHECK(rows->is_temporary);

  const auto values = at::arange(12, at::kFloat).view({3, 2, 1, 2}) / 7;
  const auto shown = store.rows_of(values, labels_of({2, 0, 1}).to(at::kInt));
  CHECK(shown->shape() == std::array<std::int64_t, 3>{2, 1, 2});
  CHECK(at::equal(shown->vectors, values.view({3, 4})));
  CHECK(*every_row_of(shown).rows == std::vector<std::int64_t>{0, 1, 2});
}

TEST_CASE("equal tensors share one data set until their last user ends") {
  generated_row_store store(format_of_run());
  const auto images = bytes(), labels = labels_of({0, 1, 2});
  auto first = store.rows_of(images, labels);
  CHECK(first->images.data_ptr() == images.data_ptr()); // no copy
  std::vector<std::shared_ptr<const dataset>> others(8);
  {
    std::vector<std::jthread> clients;
    for (auto& other : others)
      clients.emplace_back([&] { other = store.rows_of(images, labels); });
  }
  for (const auto& other : others)
    CHECK(other == first);
  CHECK(store.size() == 1);
  const auto others_labels = store.rows_of(images, labels_of({0, 1, 1}));
  CHECK((others_labels != first && store.size() == 2));
  const std::weak_ptr<const dataset> watched = first;
  first.reset();
  CHECK_FALSE(watched.expired());
  others.clear();
  CHECK(watched.expired());
  CHECK(store.size() == 1);
  CHECK(store.rows_of(images, labels)->labels == std::vector<std::int32_t>{0, 1, 2}); // created again
}

TEST_CASE("invalid tensors are refused with the reason") {
  generated_row_store store(format_of_run());
  const auto refused = [&](const at::Tensor& images, const at::Tensor& labels, const std::string& reason) {
    CHECK_THROWS_MATCHES(store.rows_of(images, labels), std::invalid_argument, Message("generated rows: " + reason));
  };
  const auto labels = labels_of({0, 1, 2});
  refused({}, labels, "images or labels are an undefined tensor");
  refused(bytes().view({3, 4}), labels, "images have the shape [3, 4]; expected [rows, channels, height, width]");
  refused(bytes().to(at::kDouble), labels, "images are of type Double; expected uint8 (Byte) or float32 (Float)");
  refused(bytes(), labels_of({0, 1}), "labels have the shape [2]; expected [3], one for each image");
  refused(bytes(), labels.to(at::kFloat), "labels are of type Float; expected int32 (Int) or int64 (Long)");
  refused(bytes(), labels_of({0, 3, 2}), "row 1 has the label 3; expected 0 to 2");
  refused(bytes(), labels_of({0, -1, 2}), "row 1 has the label -1; expected 0 to 2");
  refused(bytes().view({3, 1, 2, 2}), labels, "images have 1 channels, but the data of the run 2");
  CHECK(store.size() == 0);
}
