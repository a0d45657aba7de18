#include "runtime/modules/pickle_limits.hpp"
#include <catch2/catch_test_macros.hpp>
#include <fmt/format.h>
using namespace mneme;
using namespace std::string_view_literals;

TEST_CASE("a pickle as TorchScript writes it asks for nothing beyond itself", "[module]") {
  CHECK(pickle_excess("\x80\x02"
                      "c__torch__\nNet\nq\0)\x81}(X\x06\0\0\0weightq\x01K\x05J\0\0\1\0G\0\0\0\0\0\0\0\0"
                      "\x8a\x02\x10\x27r\x02\0\0\0h\x01ub."sv)
            .empty());
  CHECK(pickle_excess("").empty());
}

TEST_CASE("texts that do not follow and places that cannot be are refused", "[module]") {
  CHECK(pickle_excess("\x80\x02X\x0aKlt0123"sv) ==
        "byte 3 of a pickle says that a text of 1953254154 bytes follows, and 4 do; the file is damaged");
  CHECK(pickle_excess("\x80\x02T\xff\xff\xff\xff"sv) ==
        "byte 3 of a pickle says that a text of 4294967295 bytes follows, and 0 do; the file is damaged");
  CHECK(pickle_excess("\x80\x02]r\xff\xff\xff\x7f."sv) ==
        "byte 4 of a pickle keeps a value at place 2147483647, and there are no more values than bytes, 9; the file is "
        "damaged");
}

TEST_CASE("names that do not end are refused", "[module]") {
  for (const auto pickle : {"\x80\x02)c__torch__.torch"sv, "\x80\x02)c__torch__\nNet"sv})
    CHECK(pickle_excess(pickle) ==
          fmt::format("byte {} of a pickle begins a name that does not end; the file is damaged",
                      pickle.find('\n') == pickle.npos ? 4 : 14));
}

TEST_CASE("a pickle is looked at as far as TorchScript's instructions go", "[module]") {
  CHECK(pickle_excess("\x80\x02.X\xff\xff\xff\xff"sv).empty()); // it has ended
  CHECK(pickle_excess("\x80\x02IX\xff\xff\xff\xff"sv).empty()); // an instruction that LibTorch does not know
  CHECK(pickle_excess("\x80"sv).empty());
}
