#include "runtime/base/decimal_text.hpp"
#include <catch2/catch_test_macros.hpp>
#include <vector>
using namespace mneme;

TEST_CASE("parse_decimal() accepts the numbers of Python's decimal.Decimal(), but no words") {
  CHECK(parse_decimal("120") == decimal{.exponent = 3, .digits = "12"});
  CHECK(parse_decimal("-0.05") == decimal{.negative = true, .exponent = -1, .digits = "5"});
  CHECK(parse_decimal("1e-99999999999999999999")->exponent < -1'000'000'000'000);
  for (const auto* text : {"", "+", ".", "e5", "1e", "1e+", "1.2.3", "0x1", "nan", "inf", "1 ", "--1", "1_0"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_decimal(text));
  }
}

TEST_CASE("decimals are equal by value, whatever their notation") {
  for (const auto* text : {"+1", "1.0", "1.", "01", "1e0", "10e-1", "0.1E1", "001.000"}) {
    CAPTURE(text);
    CHECK(parse_decimal(text) == parse_decimal("1"));
  }
  for (const auto* text : {"-0", "0.0", "0e5", "-0e-999999999999999999999"}) {
    CAPTURE(text);
    CHECK(parse_decimal(text) == parse_decimal("0"));
  }
  CHECK(parse_decimal("9007199254740993") != parse_decimal("9007199254740992")); // the same double
}

TEST_CASE("decimals are ordered by value") {
  const std::vector<const char*> ascending{"-1e20",
                                           "-10",
                                           "-2",
                                           "-1.5",
                                           "-1",
                                           "-0.1",
                                           "0",
                                           "1e-50",
                                           "0.1",
                                           "1",
                                           "1.5",
                                           "1.5001",
                                           "2",
                                           "10",
                                           "1e3",
                                           "9007199254740992",
                                           "9007199254740993"};
  for (std::size_t i = 0; i < ascending.size(); ++i)
    for (std::size_t j = 0; j < ascending.size(); ++j) {
      CAPTURE(ascending[i], ascending[j]);
      CHECK((*parse_decimal(ascending[i]) <=> *parse_decimal(ascending[j])) == (i <=> j));
    }
}
