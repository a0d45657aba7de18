#include "runtime/data/records.hpp"
#include <ATen/ATen.h> // before Catch2, whose CHECK must be the last definition

#include "tests/support/data_files.hpp"
#include <catch2/matchers/catch_matchers_string.hpp>
using namespace mneme;
using namespace mneme::test;
using Catch::Matchers::ContainsSubstring;

namespace {

constexpr record_layout one_byte{.label_bytes = 1, .label_at = 0, .classes = 3};
constexpr record_layout two_bytes{.label_bytes = 2, .label_at = 1, .classes = 3, .domain_at = 0, .domains = 2};

std::string three_records() { return record("\2", 10) + record(std::string(1, '\0'), 11) + record("\1", 12); }

} // namespace

TEST_CASE("records of several files, plain or packed, are concatenated", "[data]") {
  const scratch_folder folder;
  write_file(folder.path() / "a", three_records());
  write_file(folder.path() / "b.gz", gzipped(record("\2", 13)));
  write_file(folder.path() / "c.xz", xzipped(three_records()));
  const auto table = read_records({folder.path() / "a", folder.path() / "b.gz", folder.path() / "c.xz"}, one_byte, {});
  REQUIRE(error_text(table) == "");
  CHECK(table->labels == std::vector<std::int32_t>{2, 0, 1, 2, 2, 0, 1});
  CHECK(table->domains.empty());
  CHECK(table->images.sizes() == at::IntArrayRef{7, 3, 32, 32});
  for (std::int64_t row = 0; row < 7; ++row)
    CHECK(table->images.select(0, row).eq(10 + (row < 4 ? row : row - 4)).all().item<bool>());
}

TEST_CASE("a record's domain is read with its class, and files with domains are read whole", "[data]") {
  const scratch_folder folder;
  write_file(folder.path() / "a", record(std::string("\0\2", 2), 1) + record("\1\1", 2) + record("\1\2", 3));
  const auto table = read_records({folder.path() / "a"}, two_bytes, {.rows = 1});
  REQUIRE(error_text(table) == "");
  CHECK(table->labels == std::vector<std::int32_t>{2, 1, 2});
  CHECK(table->domains == std::vector<std::int32_t>{0, 1, 1});
}

TEST_CASE("records are read only as far as the limits require", "[data]") {
  const scratch_folder folder;
  auto packed = xzipped(three_records() + three_records());
  write_file(folder.path() / "a.xz", packed);
  const auto two = read_records({folder.path() / "a.xz"}, one_byte, {.rows = 2});
  REQUIRE(error_text(two) == "");
  CHECK(two->images.sizes() == at::IntArrayRef{2, 3, 32, 32});
  CHECK(read_records({folder.path() / "a.xz"}, one_byte, {.per_class = 1})->labels ==
        std::vector<std::int32_t>{2, 0, 1});
  CHECK(read_records({folder.path() / "a.xz"}, one_byte, {.per_class = 3})->size() == 6);
}

TEST_CASE("a file with an incomplete record is refused", "[data]") {
  const scratch_folder folder;
  const auto cut = three_records().substr(0, 2 * 3073 + 100);
  write_file(folder.path() / "a", cut);
  write_file(folder.path() / "a.gz", gzipped(cut));
  write_file(folder.path() / "a.xz", xzipped(cut));
  CHECK_THAT(
      error_text(read_records({folder.path() / "a"}, one_byte, {})),
      ContainsSubstring("/a: byte 6246: error: the content ends here, after 2 records of 3073 bytes and 100 bytes"));
  for (const char* name : {"a.gz", "a.xz"})
    CHECK_THAT(error_text(read_records({folder.path() / name}, one_byte, {})),
               ContainsSubstring(std::string(name) + ": unpacked byte 6246: error"));
}

TEST_CASE("all broken files of records are reported together", "[data]") {
  const scratch_folder folder;
  write_file(folder.path() / "a", "");
  std::filesystem::create_directory(folder.path() / "b");
  write_file(folder.path() / "c.xz", xzipped(three_records()).substr(0, 50));
  const auto table = read_records({folder.path() / "a", folder.path() / "b", folder.path() / "c.xz"}, one_byte, {});
  REQUIRE_FALSE(table);
  CHECK(table.error().size() == 3);
  CHECK_THAT(error_text(table), ContainsSubstring("/a: byte 0") && ContainsSubstring("/b: error: is a folder") &&
                                    ContainsSubstring("/c.xz: byte 50"));
}

TEST_CASE("a class or a domain out of range is refused with its record", "[data]") {
  const scratch_folder folder;
  write_file(folder.path() / "a", record("\2", 0) + record("\3", 0));
  CHECK_THAT(error_text(read_records({folder.path() / "a"}, one_byte, {})),
             ContainsSubstring("/a: byte 3073: error: record 1 has class 3, but this data set has 0 to 2"));
  write_file(folder.path() / "b", record("\1\2", 0) + record("\2\1", 0));
  CHECK_THAT(error_text(read_records({folder.path() / "b"}, two_bytes, {})),
             ContainsSubstring("/b: byte 3074: error: record 1 has domain 2, but this data set has 0 to 1"));
}
