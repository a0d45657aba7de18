#include "runtime/storage/checksummed_tensors.hpp"
#include "runtime/storage/parameters.hpp"
#include "tests/support/scratch.hpp"
#include "tests/support/tensors.hpp"
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
using namespace mneme;
using namespace mneme::test;
using Catch::Matchers::ContainsSubstring;

namespace {

tensor_map two_tensors() {
  tensor_map tensors;
  tensors.put("a", floats({1.0F, 2.0F, 3.0F}));
  tensors.put("b", at::tensor({4, 5}, at::kLong));
  return tensors;
}

std::string refusal_of(const std::filesystem::path& file) {
  const auto read = read_checksummed_tensors(file);
  return read ? "" : diagnostic_text(read.error().front());
}

} // namespace

TEST_CASE("keep_tensors() writes files that other safetensors readers can read") {
  const scratch_folder folder;
  const auto file = folder.path() / "kept.safetensors";
  write_checksummed_tensors(file, two_tensors());
  const auto kept = read_checksummed_tensors(file);
  REQUIRE(kept);
  CHECK(kept->size() == 2);
  CHECK(kept->at("a").equal(floats({1.0F, 2.0F, 3.0F})));
  const auto plain = read_safetensors(file);
  REQUIRE(plain);
  CHECK(plain->at("b").equal(at::tensor({4, 5}, at::kLong)));
}

TEST_CASE("every changed byte of a kept file is detected or harmless") {
  const scratch_folder folder;
  const auto file = folder.path() / "kept.safetensors";
  write_checksummed_tensors(file, two_tensors());
  const auto whole = content_of(file);
  std::size_t harmless = 0;
  for (std::size_t byte = 0; byte < whole.size(); ++byte) {
    auto damaged = whole;
    damaged[byte] = static_cast<char>(damaged[byte] ^ 1);
    write_file(file, damaged);
    const auto read = read_checksummed_tensors(file);
    harmless += read ? 1 : 0; // a blank in the header was replaced by another blank
    if (read)
      CHECK((read->size() == 2 && read->at("a").equal(floats({1.0F, 2.0F, 3.0F}))));
  }
  CHECK(harmless < 8);
}

TEST_CASE("a file under another name, of an earlier version, or truncated is refused with the reason") {
  const scratch_folder folder;
  const auto file = folder.path() / "kept.safetensors", other = folder.path() / "other.safetensors";
  write_checksummed_tensors(file, two_tensors());
  std::filesystem::copy_file(file, other);
  CHECK_THAT(refusal_of(other),
             ContainsSubstring("other.safetensors") && ContainsSubstring("or was copied from another file"));
  const auto bytes = safetensors_bytes(two_tensors());
  write_file(file, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  CHECK_THAT(refusal_of(file), ContainsSubstring("has no digest of its content"));
  write_file(file, "");
  CHECK_THAT(refusal_of(file), ContainsSubstring("kept.safetensors"));
}
