#include "runtime/results/class_scores.hpp"
#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <vector>
using namespace mneme;
using Catch::Approx;

namespace {

/// `rows` rows of each class, predicted correctly with probability `accuracy`, else as a random other class.
struct drawn_answers {
  std::vector<std::int32_t> labels, answers;
  std::int64_t right = 0, classes;

  drawn_answers(std::int64_t of_classes, std::int64_t rows, double accuracy) : classes(of_classes) {
    rng_stream draw({.seed = 3, .purpose = first_method_purpose});
    for (std::int64_t i = 0; i < classes * rows; ++i) {
      const auto label = static_cast<std::int32_t>(i % classes);
      const auto other = static_cast<std::int32_t>(draw.below(static_cast<std::uint64_t>(classes - 1)));
      const bool is_right = draw.uniform() < accuracy;
      labels.push_back(label);
      answers.push_back(is_right ? label : other + (other >= label ? 1 : 0));
      right += is_right;
    }
  }
  [[nodiscard]] class_answers all() const { return {.labels = labels, .answers = answers, .classes = classes}; }
  [[nodiscard]] double accuracy() const {
    return 100.0 * static_cast<double>(right) / static_cast<double>(labels.size());
  }
};

constexpr rng_key order{.seed = 1, .purpose = first_method_purpose};

} // namespace

TEST_CASE("recall and F1 are means over the classes that have rows") {
  const std::vector<std::int32_t> labels{0, 0, 0, 1, 1, 3}, answers{0, 0, 1, 1, 2, 0};
  const auto found = scores_of({.labels = labels, .answers = answers, .classes = 5});
  // Recall is 2/3, 1/2, -, 0; F1 is 2 * 2
  // (3 + 3), 2 * 1
  // (2 + 2), -, 0; class 4 has no rows.
  CHECK(found.recall == Approx(100.0 * (2.0 / 3 + 1.0 / 2 + 0) / 3));
  CHECK(found.f1 == Approx(100.0 * (2.0 / 3 + 1.0 / 2 + 0) / 3));
  CHECK(scores_of({.classes = 5}).recall == 0.0);
  CHECK(batch_scores_of({.classes = 5}, order).f1 == 0.0);
}

TEST_CASE("the macro recall of a balanced test set is its accuracy") {
  for (const std::int64_t classes : {2, 10, 100}) {
    const drawn_answers drawn(classes, 50, 0.7);
    CHECK(scores_of(drawn.all()).recall == Approx(drawn.accuracy()));
  }
}

TEST_CASE("a class without rows in a batch of 128 counts as 0 in that batch") {
  // A class has a row in a batch with probability 1 - (1 - 1 / C)^128, which is 0.724 for a hundred classes.
  const drawn_answers drawn(100, 100, 0.629);
  const auto found = batch_scores_of(drawn.all(), order);
  CHECK(found.recall == Approx(drawn.accuracy() * (1 - std::pow(0.99, 128))).epsilon(0.02));
  // Values in the paper for this accuracy and number of classes: recall 45.0, F1 42.9 (Dong et al. 2023, table 11).
  CHECK(found.recall == Approx(45.0).margin(1.0));
  CHECK(found.f1 == Approx(42.9).margin(1.5));
  CHECK(found.f1 < scores_of(drawn.all()).f1);
}

TEST_CASE("rows predicted as any of the given classes are counted") {
  const std::vector<std::int32_t> labels{0, 0, 1, 1, 2, 2, 3, 3}, answers{0, 2, 3, 3, 2, 2, 3, 1};
  const class_answers rows{.labels = labels, .answers = answers, .classes = 4};
  CHECK(predicted_share(rows, {2, 4}) == 75.0);
  CHECK(predicted_share(rows, {0, 1}) == 12.5);
  CHECK(predicted_share({.classes = 4}, {0, 4}) == 0.0);
}

TEST_CASE("scores of small batches equal values worked out by hand") {
  // 130 rows of two classes: a full batch, and one of two rows, which may lack a class.
  std::vector<std::int32_t> labels(130, 0);
  const class_answers every_right{.labels = labels, .answers = labels, .classes = 2};
  CHECK(batch_scores_of(every_right, order).recall == 50.0); // class 1 is in neither batch
  CHECK(scores_of(every_right).recall == 100.0);
  CHECK(class_metrics(every_right, 7) ==
        std::map<std::string, double>{
            {"batch_f1", 50.0}, {"batch_recall", 50.0}, {"macro_f1", 100.0}, {"macro_recall", 100.0}});
}
