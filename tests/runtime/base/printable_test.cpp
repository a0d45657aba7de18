#include "runtime/base/printable.hpp"
#include <catch2/catch_test_macros.hpp>
using namespace mneme;

TEST_CASE("printable() replaces control characters of terminals") {
  CHECK(printable("a\x1b[2Jb\x07\x7f\r") == "a?[2Jb???");
  CHECK(printable("two\nlines\tand a tab") == "two\nlines\tand a tab");
  CHECK(printable("caf\xC3\xA9 \xC2\xA7") == "caf\xC3\xA9 \xC2\xA7"); // letters and a section sign
  CHECK(printable("\xC2\x9B"
                  "31m") == "?31m");
  CHECK(printable("").empty());
  CHECK(printable("\xE2\x80\xAE"
                  "txt") == "?txt"); // reverses the direction of text
}

TEST_CASE("printable() keeps valid UTF-8 and replaces other bytes") {
  CHECK(is_utf8(""));
  CHECK(is_utf8("caf\xC3\xA9 \xF0\x9F\x98\x80 \x1b"));
  CHECK_FALSE(is_utf8("caf\xE9"));
  CHECK_FALSE(is_utf8("\xE2\x82"));
}

TEST_CASE("printable() replaces invalid UTF-8 sequences") {
  CHECK(printable("caf\xE9") == "caf?"); // Latin-1
  CHECK(printable("\xFF\xFE"
                  "a") == "??a");
  CHECK(printable("\xE2\x82\xAC \xF0\x9F\x98\x80") == "\xE2\x82\xAC \xF0\x9F\x98\x80"); // a euro and a face
  CHECK(printable("\xE2\x82") == "??");                                                 // truncated
  CHECK(printable("\xC0\xAF") == "??");                                                 // an overlong encoding of '/'
  CHECK(printable("\xED\xA0\x80") == "???");                                            // half of a surrogate pair
  CHECK(printable("\xF4\x90\x80\x80") == "????");                                       // beyond Unicode
}

TEST_CASE("printable_message() shortens a long message but keeps its beginning and end") {
  CHECK(printable_message("short", 8) == "short");
  CHECK(printable_message(std::string(100, 'a') + "\x1b expected b", 16) ==
        "aaaaaaaaaaaa ... (96 bytes left out) ... ed b");
  const std::string accents = "\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9";
  CHECK(printable_message(accents, 12).find('?') == std::string::npos); // no character was cut
  CHECK(printable_message(std::string(10'000'000, 'x')).size() < 4100);
}
