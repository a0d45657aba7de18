#include "runtime/base/csv_fields.hpp"
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <cstdint>
#include <limits>
using namespace mneme;
using record = std::vector<std::string>;

namespace {

std::vector<record> records_of(std::string_view text) {
  std::vector<record> records;
  csv::record_reader reader(text);
  while (reader.next())
    records.emplace_back(reader.fields().begin(), reader.fields().end());
  return records;
}

/// "LINE: error" of the first invalid record.
std::string first_error(std::string_view text) {
  csv::record_reader reader(text);
  while (reader.next())
    if (!reader.error().empty())
      return std::to_string(reader.line()) + ": " + reader.error();
  return "";
}

float float_of(std::string_view field) {
  float value = -7.0F;
  CHECK(csv::parse_number(field, value));
  return value;
}

} // namespace

TEST_CASE("delimiters separate fields, whose surrounding blanks are removed") {
  CHECK(records_of("client, row\t,task") == std::vector<record>{{"client", "row", "task"}});
  CHECK(records_of("\"a, b\", \"7\" ,c d") == std::vector<record>{{"a, b", "7", "c d"}});
  CHECK(records_of("1,,3\n1,2,\n") == std::vector<record>{{"1", "", "3"}, {"1", "2", ""}});
  CHECK(records_of("").empty());
}

// Python 3.11: list(csv.reader(io.StringIO(text, newline=""))), and pandas 3.1.1's read_csv, give the same values.
TEST_CASE("a quoted field may contain doubled quotes, delimiters, line breaks and blanks") {
  CHECK(records_of("a,b\n1,\"5\"\" disc\"\n2,\"x, y\"\n3,\"two\nlines\"\n4,\"\"\n5,\"\"\"\"\n6,\" a \"\n") ==
        std::vector<record>{
            {"a", "b"}, {"1", "5\" disc"}, {"2", "x, y"}, {"3", "two\nlines"}, {"4", ""}, {"5", "\""}, {"6", " a "}});
  CHECK(records_of("5\" disc,1\n") == std::vector<record>{{"5\" disc", "1"}}); // a quote in an unquoted field
}

TEST_CASE("records are counted by the line on which they begin, for any line ending") {
  for (const std::string end : {"\n", "\r\n", "\r"}) {
    CAPTURE(end);
    const auto text = "\xEF\xBB\xBF" + end + "a,b" + end + " " + end + "\"x" + end + "y\",2" + end + "3,4" + end + end;
    csv::record_reader reader(text);
    std::vector<std::size_t> lines;
    while (reader.next())
      lines.push_back(reader.line());
    CHECK(lines == std::vector<std::size_t>{2, 4, 6});
  }
}

TEST_CASE("semicolons or tabs separate fields if the first record has no comma") {
  CHECK(records_of("a;b\n1,5;2\n") == std::vector<record>{{"a", "b"}, {"1,5", "2"}});
  CHECK(records_of("a\tb\n\t2\n") == std::vector<record>{{"a", "b"}, {"", "2"}});
  CHECK(records_of("\ta\tb\n0\t1\t2\n") == std::vector<record>{{"", "a", "b"}, {"0", "1", "2"}});
  CHECK(records_of("a;b,c\n1,2\n") == std::vector<record>{{"a;b", "c"}, {"1", "2"}});
  CHECK(records_of("\"a,b\";c\n1;2\n") == std::vector<record>{{"a,b", "c"}, {"1", "2"}});
}

TEST_CASE("invalid quotes are an error of their record") {
  CHECK(first_error("a,b\n1,\"x\"y\n") ==
        "2: text follows the closing quote of field 2; expected a delimiter, and \"\" "
        "for a quote within quotes");
  CHECK(records_of("1,\"x\"y\n2,z\n").back() == record{"2", "z"});
  CHECK(
      first_error("a,b\n1,2\n1,\"x\ny\n") ==
      "3: a quote that opens on line 3 is never closed; expected a closing quote, and \"\" for a quote within quotes");
}

TEST_CASE("a field that was written reads back equal") {
  for (const std::string text : {"plain", "5\" disc", "a, b", "two\nlines", " blanks ", "", "\"", "tab\t"}) {
    CAPTURE(text);
    CHECK(records_of("x," + csv::field_text(text)) == std::vector<record>{{"x", text}});
  }
}

TEST_CASE("a number must fill its field and have the expected kind") {
  std::int64_t whole = 5;
  double real = 0.0;
  CHECK((csv::parse_number("-12", whole) && whole == -12));
  CHECK((csv::parse_number("+12", whole) && whole == 12));
  CHECK((csv::parse_number("2.5e3", real) && real == 2500.0));
  for (const auto* field : {"", "7x", "1.5", "99999999999999999999", " 3", "+-1", "++1", "+"})
    CHECK_FALSE(csv::parse_number(field, whole));
  for (const auto* field : {"+-1", "1,5", "0x10", "1_000", "1e999"})
    CHECK_FALSE(csv::parse_number(field, real));
}

// numpy 2.4.6: [numpy.float32(text) for text in ...]
TEST_CASE("a float that underflows is 0, a denormal keeps its value, an overflow is an error") {
  CHECK(float_of("3.2e-50") == 0.0F);
  CHECK((float_of("-3.2e-50") == 0.0F && std::signbit(float_of("-3.2e-50"))));
  CHECK(float_of("1e-400") == 0.0F);
  CHECK(float_of("1e-99999999999999999999") == 0.0F);
  CHECK(float_of("0." + std::string(500, '0') + "1") == 0.0F);
  CHECK(float_of("7e-46") == 0.0F);
  CHECK(float_of("7.1e-46") == std::numeric_limits<float>::denorm_min());
  CHECK(float_of("1e-40") == 9.99995e-41F);
  CHECK(float_of("3.4028235e38") == std::numeric_limits<float>::max());
  CHECK(float_of("+1.") == 1.0F);
  float ignored = 0.0F;
  for (const auto* field : {"1e39", "-1e39", "1e400", "1e99999999999999999999"}) {
    CHECK_FALSE(csv::parse_number(field, ignored));
    CHECK(csv::is_above_float(field));
  }
  for (const auto* field : {"3.2e-50", "inf", "nan", "x", ""})
    CHECK_FALSE(csv::is_above_float(field));
}
