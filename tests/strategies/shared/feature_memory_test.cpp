// Exemplars by hand, and the content of a memory from task to task.
#include "strategies/shared/feature_memory.hpp"
#include "tests/support/tensors.hpp"
#include <catch2/catch_test_macros.hpp>
using namespace mneme;
using namespace mneme::test;

namespace {

using places = std::vector<std::int64_t>;

/// Points of class 0 with mean (2, 0), and of class 1 with mean (0, 5).
embedding_rows points() {
  return {.features = floats({0, 0, 0, 5, 3, 0, 2, 1, 0, 4, 3, -1, 0, 6}).view({7, 2}),
          .labels = at::tensor(std::vector<std::int32_t>{0, 1, 0, 0, 1, 0, 1}, at::kInt)};
}

places labels_of(const embedding_rows& rows) {
  places labels;
  for (std::int64_t i = 0; i < rows.size(); ++i)
    labels.push_back(rows.labels.const_data_ptr<std::int32_t>()[i]);
  return labels;
}

} // namespace

TEST_CASE("exemplars are the rows nearest to their class mean, ceil(ratio n) of a class") {
  // Squared distances of class 0 to (2, 0): 4, 1, 1, 2; of class 1 to (0, 5): 0, 1, 1. Ties go to the first.
  CHECK((exemplars_of(points(), {.ratio = 0.5}) == places{2, 3, 1, 4}));
  CHECK((exemplars_of(points(), {.ratio = 0.01}) == places{2, 1}));
  CHECK((exemplars_of(points(), {.ratio = 1.0}) == places{2, 3, 5, 0, 1, 4, 6}));
  CHECK(exemplars_of(points(), {.ratio = 0.0}).empty());
  const embedding_rows ten{.features = at::zeros({10, 2}, at::kFloat), .labels = at::zeros({10}, at::kInt)};
  CHECK(exemplars_of(ten, {.ratio = 0.2}).size() == 2); // not three, by rounding
  CHECK(exemplars_of(ten, {.ratio = 0.21}).size() == 3);
}

TEST_CASE("lengths affect nearest rows but not iCaRL's herding") {
  // Unit vectors are (1, 0), (1, 0), (0, 1) with mean (2/3, 1/3); raw ones have the mean (4, 1/3).
  const embedding_rows rows{.features = floats({10, 0, 2, 0, 0, 1}).view({3, 2}), .labels = at::zeros({3}, at::kInt)};
  CHECK((exemplars_of(rows, {.ratio = 1.0}) == places{1, 2, 0}));
  // Greedy: (1, 0) is nearest; then (1, 0) and (0, 1), with mean (1/2, 1/2), are nearer than (1, 0) twice.
  CHECK((exemplars_of(rows, {.how = exemplar_rules::choice::icarl, .ratio = 1.0}) == places{0, 2, 1}));
}

TEST_CASE("a task's exemplars become old when the next task begins, and stay within the limit") {
  const exemplar_rules rules{.ratio = 0.5};
  auto memory = feature_memory::saved_in({});
  CHECK_FALSE(memory.knows(0));
  memory.begin(0, points(), rules);
  CHECK(memory.knows(0));
  CHECK(memory.old().size() == 0);

  tensor_map saved;
  memory.save(saved);
  auto later = feature_memory::saved_in(saved);
  CHECK(later.knows(0));
  CHECK(same_bits(later.current().features, points().features));
  embedding_rows next = points();
  next.labels = next.labels + 2;
  later.begin(3, next, rules); // the tasks between were missed
  CHECK((labels_of(later.old()) == places{0, 0, 1, 1}));
  CHECK(same_bits(later.old().features, floats({3, 0, 2, 1, 0, 5, 0, 4}).view({4, 2})));
  later.begin(4, points(), rules);
  CHECK((labels_of(later.old()) == places{0, 0, 1, 1, 2, 2, 3, 3}));
  CHECK((labels_of(limit_rows(later.old(), 7)) == places{0, 1, 2, 3}));
  CHECK(same_bits(limit_rows(later.old(), 7).features, floats({3, 0, 0, 5, 3, 0, 0, 5}).view({4, 2})));
  CHECK(limit_rows(later.old(), 3).size() == 0);
  CHECK(limit_rows(later.old(), 0).size() == 8);
}

TEST_CASE("training rows are the concatenation of all parts") {
  const std::vector<embedding_rows> parts{{}, points(), points()};
  const auto made = rows_to_train(parts, 2);
  CHECK(made.size() == 14);
  CHECK(made.source->label(8) == 1);
  CHECK(same_bits(made.source->vectors.narrow(0, 7, 7).contiguous(), points().features));
}
