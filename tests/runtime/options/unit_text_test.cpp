#include "runtime/options/unit_text.hpp"
#include <catch2/catch_test_macros.hpp>
using namespace mneme;
using namespace std::chrono_literals;

TEST_CASE("durations are parsed in every unit and formatted in the largest that fits", "[scenario]") {
  CHECK(parse_duration("30 s") == 30s);
  CHECK(parse_duration("5 min") == 5min);
  CHECK(parse_duration("50 ms") == 50ms);
  CHECK(parse_duration("2 h") == 2h);
  CHECK(parse_duration("1us") == 1us);
  CHECK(parse_duration(" 10 ns ") == 10ns);
  CHECK(parse_duration("1.5 s") == 1500ms);
  CHECK(parse_duration("0.1 s") == 100ms);
  CHECK(parse_duration("1000000 h") == std::chrono::hours(1'000'000));
  CHECK(duration_text(90s) == "90 s");
  CHECK(duration_text(120s) == "2 min");
  CHECK(duration_text(0s) == "0 s");
  CHECK(duration_text(1500ms) == "1500 ms");
  CHECK(duration_text(7ns) == "7 ns");
}

TEST_CASE("invalid durations are refused", "[scenario]") {
  for (const auto* text : {"", "s", "30", "30 S", "30 seconds", "-1 s", "+1 s", "1e3 s", "1 2 s", "1..5 s", "0.1 ns",
                           "1000001 h", "99999999999999999999 ns", "nan s"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_duration(text));
  }
}

TEST_CASE("sizes are parsed in powers of 1000 and of 1024", "[scenario]") {
  CHECK(parse_size("512 B")->bytes == 512);
  CHECK(parse_size("1 GB")->bytes == 1'000'000'000);
  CHECK(parse_size("4 MiB")->bytes == 4'194'304);
  CHECK(parse_size("0.5 KiB")->bytes == 512);
  CHECK(parse_size("2kB")->bytes == 2000);
  CHECK_FALSE(parse_size("4 mib"));
  CHECK_FALSE(parse_size("4"));
  CHECK(parse_size("1024 TiB")->bytes == std::int64_t{1} << 50);
  CHECK_FALSE(parse_size("1025 TiB"));
  CHECK_FALSE(parse_size("9999999 TiB"));
  CHECK(size_text({4'194'304}) == "4 MiB");
  CHECK(size_text({2'000'000}) == "2 MB");
  CHECK(size_text({1536}) == "1536 B");
  CHECK(size_text({0}) == "0 B");
}

TEST_CASE("formatted numbers keep every bit and are valid TOML", "[scenario]") {
  CHECK(number_text(0.1) == "0.1");
  CHECK(number_text(2000.0) == "2000.0");
  CHECK(number_text(1e300) == "1e+300");
  CHECK(std::stod(number_text(0.1 + 0.2)) == 0.1 + 0.2);
}

TEST_CASE("strings are escaped as TOML requires", "[scenario]") {
  CHECK(quote_text("a \"b\" \\ \n\t\x01\x7f \xc3\xa4") == "\"a \\\"b\\\" \\\\ \\n\\t\\u0001\\u007F \xc3\xa4\"");
}
