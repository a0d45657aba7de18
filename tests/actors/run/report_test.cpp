#include "actors/run/report.hpp"
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
using namespace mneme;
using Catch::Matchers::ContainsSubstring;

namespace {

const accuracy_matrix two_tasks{.rows = {{98.7}, {5.125, 100}}, .pooled = {98.7, 52.5}};

} // namespace

TEST_CASE("elapsed_text() formats durations for readers") {
  CHECK(elapsed_text(0) == "0.0 s");
  CHECK(elapsed_text(59.94) == "59.9 s");
  CHECK(elapsed_text(59.96) == "1 min 00 s");
  CHECK(elapsed_text(245) == "4 min 05 s");
  CHECK(elapsed_text(3600 * 3 + 60 * 7 + 59) == "3 h 07 min");
  CHECK(elapsed_text(86400 * 2 + 3600 * 4) == "2 d 04 h");
}

TEST_CASE("mebibytes_text() formats traffic in MiB, and large traffic in GiB") {
  CHECK(mebibytes_text(0) == "0.0 MiB");
  CHECK(mebibytes_text(1 << 20) == "1.0 MiB");
  CHECK(mebibytes_text(std::int64_t{20'480} << 20) == "20.0 GiB");
}

TEST_CASE("matrix_text() aligns the accuracy matrix") {
  CHECK(matrix_text(two_tasks) == "accuracy in percent\n"
                                  "after task     all |      1      2\n"
                                  "         1   98.70 |  98.70\n"
                                  "         2   52.50 |   5.12 100.00");
  CHECK(matrix_text({}).empty());
}

TEST_CASE("matrix_text() of many tasks has two accuracies per task: after training, and at the end") {
  accuracy_matrix many;
  for (std::size_t t = 0; t < 21; ++t) {
    many.rows.push_back(std::vector<double>(t + 1, 90.0 - static_cast<double>(t)));
    many.pooled.push_back(50.0);
  }
  const auto text = matrix_text(many);
  CHECK_THAT(text, ContainsSubstring("\n         1         90.00        70.00\n"));
  CHECK_THAT(text, ContainsSubstring("\n        21         70.00        70.00"));
}

TEST_CASE("report_text() ends with the run digest") {
  const auto text = report_text({.run_digest = "0123abcd",
                                 .status = "done",
                                 .client_rounds = 50,
                                 .metrics = metrics_of(two_tasks),
                                 .upload_bytes = 3 << 20,
                                 .virtual_seconds = 61},
                                two_tasks, "runs/x");
  CHECK_THAT(text, Catch::Matchers::StartsWith("accuracy in percent\n") &&
                       Catch::Matchers::EndsWith("\nrun digest 0123abcd"));
  CHECK_THAT(text, ContainsSubstring("final accuracy      52.50 %, mean over tasks 52.56 %\n"));
  CHECK_THAT(text, ContainsSubstring("average incremental 75.60 %\n"));
  CHECK_THAT(
      text,
      ContainsSubstring(
          "forgetting          93.58 % from the best accuracy before the last task, 93.58 % from the best accuracy\n"));
  CHECK_THAT(text, ContainsSubstring("traffic             3.0 MiB up, 0.0 MiB down\n"));
  CHECK_THAT(text, ContainsSubstring("virtual time        1 min 01 s\n"));
  CHECK_THAT(text, ContainsSubstring("run directory       runs/x\n"));
  CHECK_THAT(text, !ContainsSubstring("status"));
}

TEST_CASE("report_text() of a failed run has the error, and dashes for undefined values") {
  const auto text = report_text({.status = "failed", .error = "client 3, round 2: out of memory"}, {}, "");
  CHECK_THAT(text, ContainsSubstring("status              failed: client 3, round 2: out of memory\n"));
  CHECK_THAT(text, ContainsSubstring("final accuracy      -, mean over tasks -\n"));
}
