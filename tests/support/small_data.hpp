/// small_data: small data sets for tests that need no real images.
#pragma once
#include "runtime/data/task_stream.hpp"
#include "runtime/settings/scenario.hpp"
#include <ATen/ops/zeros.h>
#include <string>
#include <utility>
#include <vector>
namespace mneme::test {

/// Split with these labels and domains, and black images of channels x height x width.
inline image_table hand_made_split(std::vector<std::int32_t> labels, std::vector<std::int32_t> domains = {},
                                   std::array<std::int64_t, 3> shape = {1, 4, 4}) {
  image_table made;
  made.images = at::zeros({std::ssize(labels), shape[0], shape[1], shape[2]}, at::kByte);
  made.labels = std::move(labels);
  made.domains = std::move(domains);
  return made;
}

/// Data with `rows` training rows of class row mod classes, and one test row per class.
inline raw_data hand_made_data(std::int64_t classes, std::int64_t rows, std::array<std::int64_t, 3> shape = {1, 4, 4}) {
  std::vector<std::int32_t> train(static_cast<std::size_t>(rows)), test(static_cast<std::size_t>(classes));
  for (std::size_t row = 0; row < train.size(); ++row)
    train[row] = static_cast<std::int32_t>(row % test.size());
  for (std::size_t c = 0; c < test.size(); ++c)
    test[c] = static_cast<std::int32_t>(c);
  raw_data made;
  made.name = "hand-made";
  made.train = hand_made_split(std::move(train), {}, shape);
  made.test = hand_made_split(std::move(test), {}, shape);
  made.classes = classes;
  made.mean.assign(static_cast<std::size_t>(shape[0]), 0.5);
  made.deviation.assign(static_cast<std::size_t>(shape[0]), 0.5);
  return made;
}

/// First error as "where: text"; "" if there is none.
template <class T>
std::string first_finding(const expected<T>& result) {
  return result ? std::string{} : result.error().front().where + ": " + result.error().front().text;
}

} // namespace mneme::test
