#include "runtime/formats/npy.hpp"
#include "tests/support/array_files.hpp"
#include <ATen/ATen.h>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
using namespace mneme;
using namespace mneme::test;
using Catch::Matchers::ContainsSubstring;

namespace {

/// @param piece number of bytes per call
tl::expected<npy_array, std::string> array_in(const std::string& file, std::size_t piece) {
  npy_reader reader(file.size());
  for (std::size_t at = 0; at < file.size(); at += piece) {
    const auto bytes = std::min(piece, file.size() - at);
    if (!reader.feed({reinterpret_cast<const std::uint8_t*>(file.data()) + at, bytes}))
      break;
  }
  return reader.finish();
}

std::string flaw_of(const std::string& file) {
  const auto array = array_in(file, 7);
  return array ? "" : array.error();
}

} // namespace

TEST_CASE("arrays are read in pieces of any size", "[npy]") {
  const auto file = npy_of<std::int64_t>("<i8", "(2, 3)", {1, 2, 3, 4, 5, -6});
  const auto expected = at::tensor({1, 2, 3, 4, 5, -6}, at::kLong).view({2, 3});
  for (const std::size_t piece : {std::size_t{1}, std::size_t{9}, std::size_t{12}, std::size_t{13}, file.size()})
    CHECK(at::equal(array_in(file, piece)->values, expected));
  CHECK(array_in(npy_of<float>("<f4", "()", {2.5F}), 100)->values.item<float>() == 2.5F);
  CHECK(array_in(npy_of<float>("<f4", "(0, 4)", {}), 100)->values.sizes() == at::IntArrayRef{0, 4});
}

TEST_CASE("column-major arrays become row-major", "[npy]") {
  const std::vector<float> values{1, 4, 2, 5, 3, 6};
  const auto file = npy_of("<f4", "(2, 3)", std::string(reinterpret_cast<const char*>(values.data()), 24), "True");
  CHECK(at::equal(array_in(file, 50)->values, at::tensor({1.F, 2.F, 3.F, 4.F, 5.F, 6.F}).view({2, 3})));
}

// numpy 2.4.6: the bytes of numpy.save() of numpy.array([[1, 2, 3], [4, 5, -6]], ">i2", order="F"),
// numpy.array([1.5, -2.0], ">f4") and numpy.array(["cat", "\u00fc"], ">U3").
TEST_CASE("big-endian numbers and text are read", "[npy]") {
  const auto whole = npy_of(">i2", "(2, 3)", std::string("\0\1\0\4\0\2\0\5\0\3\xff\xfa", 12), "True");
  for (const std::size_t piece : {std::size_t{1}, std::size_t{13}, whole.size()})
    CHECK(at::equal(array_in(whole, piece)->values, at::tensor({1, 2, 3, 4, 5, -6}, at::kShort).view({2, 3})));
  const auto real = npy_of(">f4", "(2,)", std::string("?\xc0\0\0\xc0\0\0\0", 8));
  CHECK(at::equal(array_in(real, 50)->values, at::tensor({1.5F, -2.0F})));
  const auto wide = npy_of(">U3", "(2,)", std::string("\0\0\0c\0\0\0a\0\0\0t\0\0\0\xfc\0\0\0\0\0\0\0\0", 24));
  CHECK(array_in(wide, 5)->texts == std::vector<std::string>{"cat", "\xc3\xbc"});
  CHECK(at::equal(array_in(npy_of(">u1", "(2,)", "\1\2"), 50)->values, at::tensor({1, 2}, at::kByte)));
  CHECK(array_in(npy_of(">i8", "(0,)", ""), 50)->values.numel() == 0);
}

TEST_CASE("byte strings and Unicode strings become UTF-8", "[npy]") {
  const std::string wide("c\0\0\0a\0\0\0t\0\0\0\xfc\0\0\0\0\0\0\0\0\0\0\0", 24);
  CHECK(array_in(npy_of("<U3", "(2,)", wide), 5)->texts == std::vector<std::string>{"cat", "\xc3\xbc"});
  CHECK(array_in(npy_of("|S3", "(2,)", std::string("catox\0", 6)), 5)->texts == std::vector<std::string>{"cat", "ox"});
}

TEST_CASE("sizes in an array header are checked against the number of bytes", "[npy]") {
  const std::string four(4, '\1');
  CHECK_THAT(flaw_of("PK"), ContainsSubstring("is truncated"));
  CHECK_THAT(flaw_of("no array at all"), ContainsSubstring("is it a .npy file"));
  CHECK_THAT(flaw_of(npy_of("|u1", "(5,)", four)), ContainsSubstring("states 5 bytes of values, and 4 follow"));
  CHECK_THAT(flaw_of(npy_of("<f4", "(4611686018427387904, 4611686018427387904)", four)),
             ContainsSubstring("more than 2^63"));
  CHECK_THAT(flaw_of(npy_of("|u1", "(-4,)", four)), ContainsSubstring("not a dictionary"));
  CHECK_THAT(flaw_of(npy_with("{'descr': '|u1', 'shape': (4,), }", four)), ContainsSubstring("not a dictionary"));
  CHECK_THAT(flaw_of(npy_of("<c8", "(1,)", four + four)),
             ContainsSubstring("the dtype '<c8' is not supported; expected"));
  CHECK_THAT(flaw_of(npy_of(">i3", "(1,)", four)), ContainsSubstring("the dtype '>i3' is not supported"));
  CHECK_THAT(flaw_of(npy_of("|O", "(1,)", four)), ContainsSubstring("Python objects"));
  CHECK_THAT(flaw_of(npy_with("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}", four)),
             ContainsSubstring("named fields"));
  auto longer = npy_of("|u1", "(4,)", four);
  longer[8] = '\x7f';
  longer[9] = '\x7f';
  CHECK_THAT(flaw_of(longer), ContainsSubstring("the header should have 32639 bytes"));
}

TEST_CASE("every prefix of an array is refused", "[npy]") {
  const auto file = npy_of<std::int64_t>("<i8", "(2,)", {1, 2});
  for (std::size_t bytes = 0; bytes < file.size(); ++bytes)
    CHECK_FALSE(array_in(file.substr(0, bytes), 10));
}
