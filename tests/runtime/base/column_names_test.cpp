#include "runtime/base/column_names.hpp"
#include <catch2/catch_test_macros.hpp>
using namespace mneme;

TEST_CASE("similar_name() ignores the case of letters") {
  CHECK(csv::similar_name("row_per_second", {"profile", "rows_per_second"}) == "rows_per_second");
  CHECK(csv::similar_name("LABEL", {"a", "label"}) == "label");
  CHECK(csv::similar_name("label", {"a", "b"}).empty());
}

TEST_CASE("misspelt_name() distinguishes a misspelling from another word") {
  const std::vector<std::string> known{"client", "row", "task"};
  const auto meant = [&](std::string_view name) { return csv::misspelt_name(name, known, {"task"}); };
  for (const auto* name : {"Task", "TASK", "tasks", "taks", "tsk", "task ", "task_id", "taskIndex"}) {
    CAPTURE(name);
    CHECK(meant(name) == "task");
  }
  for (const auto* name : {"Row", "rows", "rwo"}) {
    CAPTURE(name);
    CHECK(meant(name) == "row");
  }
  CHECK(meant("clients") == "client");
  for (const auto* name :
       {"task", "row", "mask", "raw", "note", "", "hospital", "client_id", "row_index", "taskmaster"}) {
    CAPTURE(name);
    CHECK(meant(name).empty());
  }
}
