#include "runtime/results/metrics.hpp"
#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
using namespace mneme;
using Catch::Approx;

namespace {

/// Tasks alternate in difficulty, so that all eight metrics differ.
accuracy_matrix four_tasks() {
  return {.rows = {{65}, {60, 80}, {70, 50, 90}, {40, 85, 65, 70}}, .pooled = {65, 72, 69, 58}};
}

} // namespace

TEST_CASE("the metrics of four tasks equal values worked out by hand") {
  const auto figures = metrics_of(four_tasks());
  CHECK(figures.average_incremental_accuracy == Approx((65 + 72 + 69 + 58) / 4.0));
  CHECK(figures.average_accuracy_task_mean == Approx((65 + 70 + 70 + 65) / 4.0)); // means of the rows
  CHECK(figures.final_accuracy == 58.0);
  CHECK(figures.final_accuracy_task_mean == Approx(65.0));
  CHECK(figures.forgetting == Approx(((70 - 40) + (80 - 85) + (90 - 65)) / 3.0));
  CHECK(figures.forgetting_including_last == Approx(((70 - 40) + (85 - 85) + (90 - 65)) / 3.0));
  CHECK(figures.forgetting_from_first == Approx(((65 - 40) + (80 - 85) + (90 - 65)) / 3.0));
  CHECK(figures.backward_transfer == Approx(-15.0));
}

TEST_CASE("each client counts once in personal accuracies, whatever its number of rows") {
  const auto over = personal_accuracies_of({{.client = {0}, .test_rows = 10, .correct_before = 5, .correct = 10},
                                            {.client = {2}, .test_rows = 0},
                                            {.client = {3}, .test_rows = 4, .correct_before = 1, .correct = 2},
                                            {.client = {5}, .test_rows = 100, .correct_before = 0, .correct = 75}});
  CHECK(over.clients == 3);
  CHECK(over.before == Approx((50.0 + 25.0 + 0.0) / 3.0));
  CHECK(over.mean == Approx((100.0 + 50.0 + 75.0) / 3.0));
  CHECK(over.deciles.at(4) == Approx(75.0)); // the median
  CHECK(over.deciles.at(0) == Approx(55.0)); // 50 + 0.2 * 25
  CHECK(personal_accuracies_of({}).clients == 0);
}

TEST_CASE("the metrics of three equal tasks equal those in the STSA paper") {
  const auto figures =
      metrics_of({.rows = {{90}, {80, 70}, {60, 75, 50}}, .pooled = {90, 75, (60 + 75 + 50) / 3.0}}); // equal sizes
  CHECK(figures.average_incremental_accuracy == Approx(75.556).epsilon(1e-5));
  CHECK(figures.average_accuracy_task_mean == Approx(75.556).epsilon(1e-5));
  CHECK(figures.final_accuracy == Approx(61.667).epsilon(1e-5));
  CHECK(figures.forgetting_including_last == Approx(15.0));
  CHECK(figures.forgetting == Approx(12.5));
}

TEST_CASE("forgetting of three tasks, with and without the last one, equals values worked out by hand") {
  // The best values of each column before the last row are 90 and 80. The last row is 40, 85, 60.
  const auto figures = metrics_of({.rows = {{90}, {70, 80}, {40, 85, 60}}, .pooled = {90, 75, (40 + 85 + 60) / 3.0}});
  CHECK(figures.forgetting == Approx(((90 - 40) + (80 - 85)) / 2.0));
  CHECK(figures.forgetting_including_last == Approx(((90 - 40) + (85 - 85)) / 2.0)); // as in the paper: never negative
  CHECK(figures.forgetting_from_first == Approx(((90 - 40) + (80 - 85)) / 2.0));
  CHECK(figures.average_incremental_accuracy == Approx((90 + 75 + 185 / 3.0) / 3.0));
}

TEST_CASE("a single task has no forgetting") {
  const auto figures = metrics_of({.rows = {{75}}, .pooled = {75}});
  CHECK(figures.average_incremental_accuracy == 75.0);
  CHECK(figures.average_accuracy_task_mean == 75.0);
  CHECK(figures.final_accuracy == 75.0);
  CHECK(figures.final_accuracy_task_mean == 75.0);
  CHECK_FALSE(figures.forgetting);
  CHECK_FALSE(figures.forgetting_including_last);
  CHECK_FALSE(figures.forgetting_from_first);
  CHECK_FALSE(figures.backward_transfer);
}

TEST_CASE("a run that ended during its first task has no metrics") {
  const auto figures = metrics_of({});
  CHECK_FALSE(figures.average_incremental_accuracy);
  CHECK_FALSE(figures.final_accuracy);
  CHECK_FALSE(figures.forgetting);
}

TEST_CASE("two tasks with constant accuracy have transfer 0, not -0") {
  const auto figures = metrics_of({.rows = {{50}, {50, 70}}, .pooled = {50, 60}});
  CHECK(figures.backward_transfer == 0.0);
  CHECK_FALSE(std::signbit(*figures.backward_transfer));
}

TEST_CASE("the evaluation at the end of a task becomes a row of the matrix") {
  accuracy_matrix matrix;
  matrix.add({.task = {0}, .accuracy = 90.0, .accuracy_per_task = {90.0}, .end_of_task = true});
  matrix.add({.task = {1}, .accuracy = 70.0, .accuracy_per_task = {60.0, 85.0}, .end_of_task = true});
  CHECK(matrix.rows == std::vector<std::vector<double>>{{90.0}, {60.0, 85.0}});
  CHECK(matrix.pooled == std::vector<double>{90.0, 70.0});
}

TEST_CASE("a target is reached at the first evaluation that has it") {
  const std::vector<evaluation_record> evaluations{{.at = virtual_time(std::chrono::seconds(1)), .accuracy = 40.0},
                                                   {.at = virtual_time(std::chrono::seconds(2)), .accuracy = 60.0},
                                                   {.at = virtual_time(std::chrono::seconds(3)), .accuracy = 50.0}};
  const auto reached = times_to({60.0, 45.0, 61.0}, evaluations);
  REQUIRE(reached.size() == 3);
  CHECK(reached[0].seconds == 2.0);
  CHECK(reached[1].seconds == 2.0);
  CHECK(reached[2].accuracy == 61.0);
  CHECK_FALSE(reached[2].seconds);
}

TEST_CASE("deciles lie between sorted values") {
  CHECK(deciles_of({}).empty());
  CHECK(deciles_of({7.0}) == std::vector<double>(9, 7.0));
  CHECK(deciles_of({10.0, 0.0, 5.0, 1.0, 2.0, 4.0, 3.0, 9.0, 8.0, 7.0, 6.0}) ==
        std::vector<double>{1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0});
  CHECK(deciles_of({0.0, 10.0}) == std::vector<double>{1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0});
}

TEST_CASE("forgetting during a task is relative to the best accuracy before that task") {
  accuracy_matrix before;
  before.rows = {{80.0}, {60.0, 90.0}};
  CHECK_FALSE(forgetting_at(before, {.task = {0}, .accuracy_per_task = {50.0}}));
  CHECK(forgetting_at(before, {.task = {2}, .accuracy_per_task = {20.0, 70.0, 99.0}}) == (60.0 + 20.0) / 2);
  CHECK(forgetting_at(before, {.task = {1}, .accuracy_per_task = {85.0, 10.0}}) == -5.0);
  // At the end of a task it equals the forgetting of the matrix.
  auto whole = before;
  const evaluation_record last{.task = {2}, .accuracy_per_task = {20.0, 70.0, 99.0}, .end_of_task = true};
  whole.add(last);
  CHECK(metrics_of(whole).forgetting == forgetting_at(before, last));
}
