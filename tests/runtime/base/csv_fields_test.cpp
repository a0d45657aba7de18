#include "runtime/base/csv_fields.hpp"
#include <catch2/catch_test_macros.hpp>
#include <cstdint>
using namespace mneme;
using fields = std::vector<std::string_view>;

TEST_CASE("a line has one field more than commas, without blanks and quotes around them") {
  CHECK(csv::fields_of("client, row\t,task") == fields{"client", "row", "task"});
  CHECK(csv::fields_of("\"a, b\",\" 7 \",c d") == fields{"a, b", "7", "c d"});
  CHECK(csv::fields_of("1,,3") == fields{"1", "", "3"});
  CHECK(csv::fields_of("1,2,") == fields{"1", "2", ""});
  CHECK(csv::fields_of("") == fields{""});
}

TEST_CASE("lines end in any of the usual ways, and the last one by itself") {
  std::string_view text = csv::without_mark("\xEF\xBB\xBF"
                                            "first\r\n\n second ");
  CHECK(csv::next_line(text) == "first");
  CHECK(csv::next_line(text).empty());
  CHECK(csv::next_line(text) == "second");
  CHECK(text.empty());
}

TEST_CASE("a number is the whole field, of its own kind") {
  std::int64_t whole = 5;
  double real = 0.0;
  CHECK((csv::is_number("-12", whole) && whole == -12));
  CHECK((csv::is_number("2.5e3", real) && real == 2500.0));
  for (const auto* field : {"", "7x", "1.5", "99999999999999999999", " 3"})
    CHECK_FALSE(csv::is_number(field, whole));
}
