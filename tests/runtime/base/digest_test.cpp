#include "runtime/base/digest.hpp"
#include "tests/support/scratch.hpp"
#include <ATen/ops/arange.h>
#include <ATen/ops/zeros.h>
#include <catch2/catch_test_macros.hpp>
#include <set>
#include <system_error>
using namespace mneme;

namespace {

digest128 digest_of_text(std::string_view text) { return digest_of(std::as_bytes(std::span(text))); }

/// Input of xxHash's sanity check.
std::string sanity_bytes(std::size_t count) {
  std::string bytes;
  for (std::uint64_t generator = 2654435761U; bytes.size() < count; generator *= 11400714785074694797ULL)
    bytes += static_cast<char>(generator >> 56);
  return bytes;
}

tensor_map one(const char* name, at::Tensor value) {
  tensor_map map;
  map.put(name, std::move(value));
  return map;
}

} // namespace

TEST_CASE("digests agree with the vectors of xxHash's sanity check") {
  CHECK(hex_text(digest_of_text("")) == "99aa06d3014798d86001c324468d497f");
  CHECK(digest_of_text(sanity_bytes(1)) == digest128{0xA6CD5E9392000F6A, 0xC44BDFF4074EECDB});
  CHECK(digest_of_text(sanity_bytes(6)) == digest128{0x082AFE0B8162D12A, 0x3E7039BDDA43CFC6});
  CHECK(digest_of_text(sanity_bytes(222)) == digest128{0x337E09641B948717, 0xF1AEBD597CEC6B3A});
  CHECK(digest_of_text(sanity_bytes(512)) == digest128{0x18D2D110DCC9BCA1, 0x617E49599013CB6B});
}

TEST_CASE("hex_text() prints the high half first, with leading zeros") {
  CHECK(hex_text(digest128{.high = 0xab, .low = 1}) == "00000000000000ab0000000000000001");
}

TEST_CASE("a chained digest is the hash of the previous digest and the item") {
  run_digest digest;
  CHECK(digest.value() == digest128{});
  digest.add(std::uint64_t{7});
  const std::string before(16, '\0'), seven("\7\0\0\0\0\0\0\0", 8);
  CHECK(digest.value() == digest_of_text(before + seven));
}

TEST_CASE("a chained digest depends on the order of items, but not on the type of an integer") {
  auto chain = [](auto first, auto second) {
    run_digest digest;
    digest.add(first);
    digest.add(second);
    return digest.value();
  };
  CHECK(chain(1, 2) != chain(2, 1));
  CHECK(chain(1, 2) == chain(std::uint64_t{1}, std::int64_t{2}));
  CHECK(chain(1, -2) == chain(std::uint32_t{1}, std::int64_t{-2}));
  CHECK(chain(1.0, 2) != chain(1, 2));
  CHECK(chain(0.0, 2) != chain(-0.0, 2)); // compared by bits
}

TEST_CASE("a digest enters another digest with both halves") {
  auto after = [](digest128 item) {
    run_digest digest;
    digest.add(item);
    return digest.value();
  };
  CHECK(after({1, 2}) != after({2, 1}));
  CHECK(after({1, 2}) == digest_of_text(std::string(16, '\0') + std::string("\1\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0", 16)));
}

TEST_CASE("a digest of tensors depends on names, dtypes, shapes and contents") {
  const auto values = at::arange(6, at::kFloat);
  const std::set<digest128> digests{digest_of(one("a", values)),
                                    digest_of(one("b", values)),
                                    digest_of(one("a", values.view({2, 3}))),
                                    digest_of(one("a", values.view({3, 2}))),
                                    digest_of(one("a", values.view(at::kInt))),
                                    digest_of(one("a", values.add(1))),
                                    digest_of(one("a", values.slice(0, 0, 5))),
                                    digest_of(tensor_map{})};
  CHECK(digests.size() == 8);
  CHECK(digest_of(one("a", values)) == digest_of(one("a", values.clone())));
}

TEST_CASE("moving characters between neighboring names changes a digest") {
  auto two = [](const char* first, const char* second) {
    tensor_map map;
    map.put(first, at::zeros({0}));
    map.put(second, at::zeros({0}));
    return digest_of(map);
  };
  CHECK(two("ab", "c") != two("a", "bc"));
}

TEST_CASE("the digest of a file is the digest of its bytes, also over several blocks") {
  const test::scratch_folder folder;
  const auto content = sanity_bytes((std::size_t{1} << 20) + 13); // more than one block
  test::write_file(folder.path() / "large", content);
  CHECK(digest_of_file(folder.path() / "large") == digest_of_text(content));
  test::write_file(folder.path() / "empty", "");
  CHECK(digest_of_file(folder.path() / "empty") == digest_of_text(""));
}

TEST_CASE("an unreadable file is named in the error") {
  const test::scratch_folder folder;
  for (const auto& path : {folder.path() / "absent", folder.path()})
    try {
      (void)digest_of_file(path);
      FAIL("read " << path);
    } catch (const std::system_error& e) {
      CHECK(std::string(e.what()).find(path.string()) != std::string::npos);
    }
}
