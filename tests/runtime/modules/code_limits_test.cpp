#include "runtime/modules/code_limits.hpp"
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
using namespace mneme;
using Catch::Matchers::ContainsSubstring;

namespace {

std::string repeated(const std::string& text, int times) {
  std::string made;
  for (int i = 0; i < times; ++i)
    made += text;
  return made;
}

} // namespace

TEST_CASE("code of usual nets is accepted, however long it is") {
  CHECK(code_limit_error("").empty());
  CHECK(code_limit_error(repeated("  x = torch.relu((self.conv).forward(x, )) + 1\n", 10'000)).empty());
  CHECK(code_limit_error("  y = [" + repeated("-1, ", 100'000) + "]\n").empty());
  CHECK(code_limit_error("  y = [\n" + repeated("-1,\n", 100'000) + "]\n").empty());
}

TEST_CASE("brackets and operators in strings and comments do not count") {
  CHECK(code_limit_error("x = \"" + repeated("(", 5'000) + "\"\n").empty());
  CHECK(code_limit_error("x = 'it\\'s " + repeated("+", 5'000) + "'\n").empty());
  CHECK(code_limit_error("# " + repeated("(+", 5'000) + "\nx = 1\n").empty());
}

TEST_CASE("chains that make a parser recurse are refused") {
  CHECK_THAT(code_limit_error("x = " + repeated("(", 201)),
             ContainsSubstring("brackets of its code nest deeper than 200"));
  for (const auto* const chain : {"+ 1 ", "-", "not ", ".T", "[0]", "()", "if y else ", "+ f(1, 1)", "+ (\n1)"}) {
    CAPTURE(chain);
    CHECK_THAT(code_limit_error("x = y " + repeated(chain, 2'000)), ContainsSubstring("more than 1000 operators"));
  }
  CHECK_THAT(code_limit_error("if a:\n" + repeated(" ", 1'001) + "x = 1\n"),
             ContainsSubstring("indented by 1001 columns"));
}

TEST_CASE("an element without an index is refused, and an empty list is accepted") {
  for (const auto* const code : {"y = x[]\n", "y = f(x[ ], 1)\n", "y = (a)[]\n", "y = x[0][]\n", "y = [1][]\n"}) {
    CAPTURE(code);
    CHECK_THAT(code_limit_error(code), ContainsSubstring("takes an element and does not say which"));
  }
  for (const auto* const code :
       {"__parameters__ = []\n", "f([], 1)\n", "return []\n", "if x in []:\n", "y = x[0]\n", "[[]]\n"})
    CHECK(code_limit_error(code).empty());
}
