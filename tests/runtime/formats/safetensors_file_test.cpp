#include "runtime/formats/safetensors_file.hpp"
#include "tests/support/scratch.hpp"
#include <ATen/ATen.h>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators_range.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
using namespace mneme;
using Catch::Matchers::ContainsSubstring;

namespace {

std::string little_endian(std::uint64_t number) {
  std::string bytes;
  for (int i = 0; i < 8; ++i)
    bytes += static_cast<char>(number >> (8 * i));
  return bytes;
}

std::string file_of(const std::string& header, const std::string& contents) {
  return little_endian(header.size()) + header + contents;
}

expected<tensor_map> read_back(const std::string& bytes) {
  const test::scratch_folder folder;
  test::write_file(folder.path() / "net.safetensors", bytes);
  return read_safetensors(folder.path() / "net.safetensors");
}

std::string as_text(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// One tensor of every dtype, including a scalar, an empty tensor and odd sizes.
tensor_map every_dtype() {
  tensor_map map;
  map.put("f64", at::arange(3, at::kDouble) / 7);
  map.put("f32", at::arange(6, at::kFloat).view({2, 3}) / 7);
  map.put("f16", at::arange(3, at::kFloat).to(at::kHalf));
  map.put("bf16", at::arange(3, at::kFloat).to(at::kBFloat16));
  map.put("i64", at::scalar_tensor(-5, at::kLong));
  map.put("i32", at::arange(2, at::kInt));
  map.put("i16", at::arange(5, at::kShort));
  map.put("i8", at::arange(3, at::kChar) - 1);
  map.put("u8", at::arange(1, at::kByte));
  map.put("bool", at::arange(3, at::kInt) == 1);
  map.put("empty", at::zeros({0, 4}));
  return map;
}

struct hostile {
  const char* name;
  std::string bytes;
  std::string finding; ///< part of the first diagnostic's text
  std::uint64_t byte;  ///< its offset
};

std::string named(const std::string& entry) { return "{\"a\":" + entry + "}"; }

const std::vector<hostile> hostile_files{
    {"an empty file", "", "has 0 bytes", 0},
    {"half a length", std::string(4, '\1'), "has 4 bytes", 0},
    {"a header longer than the file", little_endian(1000) + "{}", "the header should have 1000 bytes, but 2 follow", 0},
    {"a header longer than any", little_endian(~std::uint64_t{0}) + "{}",
     "the header should have 18446744073709551615 bytes", 0},
    {"no header", little_endian(0), "does not begin with '{'", 8},
    {"a header that begins with a space", file_of(" {}", ""), "does not begin with '{'", 8},
    {"another kind of file", file_of("PK\3\4 a zip archive", ""), "is this a safetensors file", 8},
    {"JSON that breaks off", file_of("{\"a\":", ""), "not valid JSON", 13},
    {"JSON with bytes that are no UTF-8", file_of("{\"\xff\":1}", ""), "not valid JSON", 10},
    {"a number that no double holds", file_of(named("1e999"), ""), "a number that is out of range", 8},
    {"a nest without end", file_of("{\"a\":" + std::string(100'000, '['), ""), "not valid JSON", 100'013},
    {"a deep nest", file_of(named("[[[[[[]]]]]]"), ""), "nests deeper", 8},
    {"a number for a tensor", file_of(named("1"), ""), "'a' has no dtype", 9},
    {"an unknown dtype", file_of(named(R"({"dtype":"F8_E4M3","shape":[4],"data_offsets":[0,4]})"), "1234"),
     "dtype 'F8_E4M3'; expected F64", 9},
    {"no shape", file_of(named(R"({"dtype":"U8","data_offsets":[0,4]})"), "1234"), "shape of 'a'", 9},
    {"a negative extent", file_of(named(R"({"dtype":"U8","shape":[-4],"data_offsets":[0,4]})"), "1234"), "shape of 'a'",
     9},
    {"a broken extent", file_of(named(R"({"dtype":"U8","shape":[4.5],"data_offsets":[0,4]})"), "1234"), "shape of 'a'",
     9},
    {"one offset", file_of(named(R"({"dtype":"U8","shape":[4],"data_offsets":[4]})"), "1234"), "data_offsets of 'a'",
     9},
    {"offsets beyond the file", file_of(named(R"({"dtype":"U8","shape":[8],"data_offsets":[0,8]})"), "1234"),
     "'a' is at bytes 0 to 8 of the contents, which have 4", 9},
    {"offsets backwards", file_of(named(R"({"dtype":"U8","shape":[0],"data_offsets":[4,0]})"), "1234"), "bytes 4 to 0",
     9},
    {"a size that is not the shape's", file_of(named(R"({"dtype":"F32","shape":[2],"data_offsets":[0,4]})"), "1234"),
     "takes 8 bytes by its shape and dtype, but 4", 9},
    {"a shape that overflows",
     file_of(named(R"({"dtype":"U8","shape":[4294967296,4294967296,4],"data_offsets":[0,4]})"), "1234"),
     "more than 2^63", 9},
    {"an empty tensor whose strides overflow",
     file_of(named(R"({"dtype":"U8","shape":[0,4294967296,4294967296],"data_offsets":[0,0]})"), ""), "more than 2^63",
     9},
    {"a name given twice",
     file_of(
         R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"a":{"dtype":"U8","shape":[2],"data_offsets":[2,4]}})",
         "1234"),
     "'a' is named twice", 9},
    {"tensors that overlap",
     file_of(
         R"({"a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]},"b":{"dtype":"U8","shape":[2],"data_offsets":[2,4]}})",
         "1234"),
     "'b' begins at byte 2 of the contents where 3 was expected: tensors overlap", 61},
    {"a hole between tensors",
     file_of(
         R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"U8","shape":[2],"data_offsets":[2,4]}})",
         "1234"),
     "leave a gap", 61},
    {"bytes at the end", file_of(named(R"({"dtype":"U8","shape":[2],"data_offsets":[0,2]})"), "1234"),
     "2 bytes at the end belong to no tensor", 63},
    {"a truth value of 7", file_of(named(R"({"dtype":"BOOL","shape":[2],"data_offsets":[0,2]})"), "\1\7"),
     "a byte is 7; expected 0 or 1", 64},
};

} // namespace

TEST_CASE("a written file reads back equal, in every dtype") {
  const auto before = every_dtype();
  const auto after = read_back(as_text(safetensors_bytes(before)));
  REQUIRE(after);
  REQUIRE(after->size() == before.size());
  for (const auto& [name, value] : before) {
    INFO(name);
    CHECK(after->at(name).scalar_type() == value.scalar_type());
    CHECK(at::equal(after->at(name), value));
    CHECK(after->at(name).sizes() == value.sizes());
  }
}

TEST_CASE("a file consists of length, header in name order padded to 8 bytes, and contents") {
  tensor_map map;
  map.put("b", at::ones({1}, at::kFloat));
  map.put("a.weight", at::arange(2, at::kShort));
  const std::string header = R"({"a.weight":{"dtype":"I16","shape":[2],"data_offsets":[0,4]},)"
                             R"("b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})";
  const std::string padding((8 - header.size() % 8) % 8, ' ');
  CHECK(as_text(safetensors_bytes(map)) == file_of(header + padding, std::string("\0\0\1\0\0\0\x80\x3f", 8)));
}

TEST_CASE("a file from another writer is read, with metadata, spaces and any order of the header") {
  const auto read = read_back(file_of(R"({"b": {"data_offsets": [4, 8], "shape": [], "dtype": "F32"},)"
                                      R"( "__metadata__": {"format": "pt"}, "a": {"dtype": "U8", "shape": [2, 2],)"
                                      R"( "data_offsets": [0, 4]}}   )",
                                      std::string("\1\2\3\4\0\0\x80\xbf", 8)));
  REQUIRE(read);
  CHECK(read->size() == 2);
  CHECK(read->at("b").item<float>() == -1.0f);
  CHECK(at::equal(read->at("a"), at::arange(1, 5, at::kByte).view({2, 2})));
}

TEST_CASE("a malformed file is refused with the offset of the error") {
  const auto& file =
      hostile_files[static_cast<std::size_t>(GENERATE(Catch::Generators::range(0, int(hostile_files.size()))))];
  INFO(file.name);
  const auto read = read_back(file.bytes);
  REQUIRE_FALSE(read);
  const auto& first = read.error().at(0);
  CHECK_THAT(first.text, ContainsSubstring(file.finding));
  CHECK_THAT(first.where, Catch::Matchers::EndsWith("net.safetensors: byte " + std::to_string(file.byte)));
}

TEST_CASE("all errors of a file are reported together") {
  const auto read = read_back(file_of(R"({"a":{"dtype":"Q4","shape":[2],"data_offsets":[0,2]},)"
                                      R"("b":{"dtype":"U8","shape":[9],"data_offsets":[2,4]}})",
                                      "1234"));
  REQUIRE_FALSE(read);
  REQUIRE(read.error().size() == 2);
  CHECK_THAT(read.error()[0].text, ContainsSubstring("'a'"));
  CHECK_THAT(read.error()[1].text, ContainsSubstring("'b'"));
}

TEST_CASE("every prefix of a file is refused") {
  const auto whole = as_text(safetensors_bytes(every_dtype()));
  const test::scratch_folder folder;
  for (std::size_t size = 0; size < whole.size(); size += 7) {
    test::write_file(folder.path() / "cut", whole.substr(0, size));
    INFO(size);
    CHECK_FALSE(read_safetensors(folder.path() / "cut"));
  }
}

TEST_CASE("a missing file and a folder are reported as errors") {
  const test::scratch_folder folder;
  for (const auto& path : {folder.path() / "absent", folder.path()}) {
    const auto read = read_safetensors(path);
    REQUIRE_FALSE(read);
    CHECK(read.error().at(0).where == path.string());
  }
}

TEST_CASE("only the first errors of a broken header are reported", "[storage]") {
  std::string header = "{";
  for (int i = 0; i < 100'000; ++i)
    header += (i > 0 ? ",\"tensor" : "\"tensor") + std::to_string(i) + "\":{\"dtype\":\"F8\"}";
  const auto read = read_back(file_of(header + "}", ""));
  REQUIRE_FALSE(read);
  CHECK(read.error().size() == 20);
}
