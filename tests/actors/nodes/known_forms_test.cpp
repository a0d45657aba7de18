#include "actors/nodes/known_forms.hpp"
#include <catch2/catch_test_macros.hpp>
#include <string>
using namespace mneme;

TEST_CASE("a form is known by its example, and of another kind by none") {
  known_forms<std::string> forms;
  CHECK_FALSE(forms.knows("weights", {10.0}));
  forms.learn("weights", {10.0});
  CHECK(forms.knows("weights", {10.0}));
  CHECK_FALSE(forms.knows("weights", {11.0}));
  CHECK_FALSE(forms.knows("weights", {10.0, 10.0}));
  CHECK_FALSE(forms.knows("gram", {10.0}));
  forms.learn("weights", {10.0});
  forms.learn("weights", {10.0});
  CHECK_FALSE(forms.knows("weights", {10.5})); // three times one example are one
}

TEST_CASE("sizes that differ between three examples are free between them, where they stay equal to one another") {
  known_forms<std::string> forms;
  for (const double rows : {4.0, 9.0, 6.0})
    forms.learn("features and labels", {rows, rows, 3.0});
  CHECK(forms.knows("features and labels", {5.0, 5.0, 3.0}));
  CHECK_FALSE(forms.knows("features and labels", {5.0, 6.0, 3.0}));
  CHECK_FALSE(forms.knows("features and labels", {5.0, 5.0, 4.0}));
  CHECK_FALSE(forms.knows("features and labels", {10.0, 10.0, 3.0}));
  CHECK_FALSE(forms.knows("features and labels", {3.0, 3.0, 3.0}));
}

TEST_CASE("sizes that were equal by chance are not tied to one another") {
  known_forms<std::string> forms;
  forms.learn("pair", {3.0, 3.0});
  forms.learn("pair", {3.0, 8.0});
  forms.learn("pair", {7.0, 5.0});
  CHECK(forms.knows("pair", {4.0, 6.0}));
}
