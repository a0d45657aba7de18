#include "tools/study/suggested_name.hpp"
#include <catch2/catch_test_macros.hpp>
using namespace mneme;

TEST_CASE("an unknown name gets the nearest known name as a suggestion") {
  const std::vector<std::string> known{"final_accuracy", "final_accuracy_task_mean", "rounds.cohort",
                                       "strategy.name",  "training.learning_rate",   "upload_bytes"};
  CHECK(name_suggestion("final_acuracy", known) == "did you mean 'final_accuracy'?");
  CHECK(name_suggestion("cohort", known) == "did you mean 'rounds.cohort'?");                // without its section
  CHECK(name_suggestion("round.cohrt", known) == "did you mean 'rounds.cohort'?");           // misspelled
  CHECK(name_suggestion("learning_rat", known) == "did you mean 'training.learning_rate'?"); // both
  CHECK(name_suggestion("accuracy", known) == "did you mean 'final_accuracy'?");             // the shortest
  CHECK(name_suggestion("qqqq", known, "expected a key") == "expected a key");
  CHECK(name_suggestion("qqqq", known) == "expected one of final_accuracy, final_accuracy_task_mean, rounds.cohort, "
                                          "strategy.name, training.learning_rate, upload_bytes");
}
