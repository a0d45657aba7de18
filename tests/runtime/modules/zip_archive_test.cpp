#include "runtime/formats/zip_archive.hpp"
#include "tests/support/module_files.hpp"
#include <ATen/ATen.h>
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
using namespace mneme;
using namespace mneme::test;
using Catch::Matchers::ContainsSubstring;

namespace {

constexpr std::uint64_t plenty = 1 << 20;

/// An exported program with deflated JSON.
std::string archive() { return zip_of(small_convolution().entries(), ".json"); }

std::span<const std::uint8_t> bytes_of(const std::string& text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

const zip_entry& entry_called(const std::vector<zip_entry>& entries, std::string_view ending) {
  const auto found =
      std::find_if(entries.begin(), entries.end(), [&](const auto& entry) { return entry.name.ends_with(ending); });
  if (found == entries.end())
    FAIL("no entry ends with " << ending << "; the first is " << entries.front().name);
  return *found;
}

/// Error of the archive with `bytes` at offset `at`.
std::string flaw_with(std::string text, std::size_t at, const std::string& bytes) {
  text.replace(at, bytes.size(), bytes);
  const auto found = zip_entries(bytes_of(text), plenty);
  return found ? "" : found.error().text;
}

} // namespace

TEST_CASE("entries are found with their content, stored or deflated") {
  const auto text = archive();
  const auto entries = zip_entries(bytes_of(text), plenty).value();
  const auto& weight = entry_called(entries, "/weights/weight_0");
  CHECK_FALSE(weight.deflated);
  CHECK(weight.bytes == 36 * sizeof(float));
  const auto numbers = zip_content(bytes_of(text), weight);
  const auto expected = spread_numbers({36});
  CHECK(std::equal(numbers.begin(), numbers.end(), static_cast<const char*>(expected.const_data_ptr())));
  const auto& program = entry_called(entries, "models/model.json");
  CHECK(program.deflated);
  CHECK(program.stored_bytes < program.bytes);
  CHECK_THAT(zip_content(bytes_of(text), program), ContainsSubstring("torch.ops.aten.conv2d.default"));
}

TEST_CASE("an entry that would unpack to more than the limit is refused before it is unpacked") {
  const auto text = archive();
  const auto found = zip_entries(bytes_of(text), 100);
  REQUIRE_FALSE(found);
  CHECK_THAT(found.error().text, ContainsSubstring("at most 100 bytes are accepted"));
}

TEST_CASE("an entry that contradicts the directory is refused") {
  const auto text = archive();
  const auto entries = zip_entries(bytes_of(text), plenty).value();
  const auto& weight = entry_called(entries, "/weights/weight_0");
  CHECK_THAT(flaw_with(text, weight.begin, "x"), ContainsSubstring("/weights/weight_0' has another checksum"));
  CHECK_THAT(flaw_with(text, weight.header, "x"), ContainsSubstring("is not at its offset in the archive's directory"));
  CHECK_THAT(flaw_with(text, weight.header + 30, "x"), ContainsSubstring("is called"));
  const auto line = text.find("PK\x01\x02");
  CHECK_THAT(flaw_with(text, line, "x"), ContainsSubstring("an entry of the archive's directory is damaged"));
  CHECK_THAT(flaw_with(text, line + 10, std::string(1, '\x0e')), ContainsSubstring("is compressed with method 14"));
  CHECK_THAT(flaw_with(text, line + 8, "\x01"), ContainsSubstring("is encrypted"));
  CHECK_THAT(flaw_with(text, line + 20, "\x7f\x7f\x7f\x7f"), ContainsSubstring("reach beyond the archive's contents"));
}
