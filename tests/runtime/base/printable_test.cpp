#include "runtime/base/printable.hpp"
#include <catch2/catch_test_macros.hpp>
using namespace mneme;

TEST_CASE("text from outside cannot give orders to a terminal") {
  CHECK(printable("a\x1b[2Jb\x07\x7f\r") == "a?[2Jb???");
  CHECK(printable("two\nlines\tand a tab") == "two\nlines\tand a tab");
  CHECK(printable("caf\xC3\xA9 \xC2\xA7") == "caf\xC3\xA9 \xC2\xA7"); // letters and a section sign
  CHECK(printable("\xC2\x9B" "31m") == "?31m");
  CHECK(printable("").empty());
}
