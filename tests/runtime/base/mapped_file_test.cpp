#include "runtime/base/mapped_file.hpp"
#include <ATen/ATen.h> // before Catch2, whose CHECK must be the last definition

#include "tests/support/scratch.hpp"
#include <catch2/catch_test_macros.hpp>
using namespace mneme;
using namespace mneme::test;

TEST_CASE("a mapped tensor has the values of the file, also after its pages were released", "[mapped_file]") {
  const scratch_folder folder;
  const auto file = folder.path() / "values";
  write_file(file, std::string("head") + std::string("\x01\0\0\0\x02\0\0\0\x03\0\0\0", 12));
  const auto values = map_tensor(file, 4, {3}, at::kInt);
  REQUIRE(values);
  CHECK(at::equal(*values, at::tensor({1, 2, 3}, at::kInt)));
  note_mapped_reads(std::uint64_t{1} << 40U);
  CHECK(at::equal(*values, at::tensor({1, 2, 3}, at::kInt)));
}

TEST_CASE("a mapped tensor keeps a file that was removed", "[mapped_file]") {
  const scratch_folder folder;
  const auto file = folder.path() / "values";
  write_file(file, "abcd");
  const auto values = map_tensor(file, 0, {2, 2}, at::kByte);
  std::filesystem::remove(file);
  REQUIRE(values);
  CHECK(values->select(0, 1).select(0, 0).item<int>() == 'c');
}

TEST_CASE("a missing or short file is an error", "[mapped_file]") {
  const scratch_folder folder;
  const auto file = folder.path() / "values";
  CHECK(map_tensor(file, 0, {1}, at::kByte).error().starts_with("cannot be opened"));
  write_file(file, "abcd");
  CHECK(map_tensor(file, 0, {5}, at::kByte).error() == "has become shorter while it was read");
}
