#include "runtime/data/byte_stream.hpp"
#include "tests/support/data_files.hpp"
#include <catch2/matchers/catch_matchers_string.hpp>
using namespace mneme;
using namespace mneme::test;
using Catch::Matchers::ContainsSubstring;

namespace {

/// 100,000 nearly incompressible bytes: the high bytes of a linear congruential generator.
std::string noise() {
  std::string bytes;
  for (std::uint32_t state = 1; bytes.size() < 100'000;)
    bytes += static_cast<char>((state = state * 1664525 + 1013904223) >> 24);
  return bytes;
}

/// Reads `bytes` bytes of the file, then expects its end.
expected<std::string> read_whole(const std::filesystem::path& file, std::size_t bytes) {
  auto stream = byte_stream::open(file);
  if (!stream)
    return tl::unexpected(stream.error());
  std::string content(bytes, '\0');
  const auto read = stream->read({reinterpret_cast<std::uint8_t*>(content.data()), bytes}).and_then([&] {
    return stream->expect_end();
  });
  if (!read)
    return tl::unexpected(read.error());
  return content;
}

} // namespace

TEST_CASE("a plain, a gzip and an xz file with the same content give the same bytes", "[data]") {
  const scratch_folder folder;
  const auto content = noise();
  write_file(folder.path() / "a", content);
  write_file(folder.path() / "a.gz", gzipped(content));
  write_file(folder.path() / "a.xz", xzipped(content));
  for (const char* name : {"a", "a.gz", "a.xz"}) {
    INFO(name);
    const auto read = read_whole(folder.path() / name, content.size());
    CHECK(error_text(read) == "");
    CHECK(*read == content);
    auto stream = byte_stream::open(folder.path() / name);
    CHECK(stream->content_bytes().value() == content.size());
    CHECK(stream->content_bytes_max() >= content.size());
    std::vector<std::uint8_t> first(5); // asking for the size consumes nothing
    REQUIRE(stream->read(first));
    CHECK(std::string(first.begin(), first.end()) == content.substr(0, 5));
  }
}

TEST_CASE("consecutive gzip members are read as one content", "[data]") {
  const scratch_folder folder;
  write_file(folder.path() / "a.gz", gzipped("one, ") + gzipped("two"));
  CHECK(read_whole(folder.path() / "a.gz", 8).value() == "one, two");
  CHECK(byte_stream::open(folder.path() / "a.gz")->content_bytes().value() == 8);
}

// xz 5.4.1 handles concatenated files, with zeros between and after them, in the same way (xz -dc).
TEST_CASE("consecutive xz streams are read as one content, with zero padding between and after them", "[data]") {
  const scratch_folder folder;
  const auto file = folder.path() / "a.xz";
  const std::string padding(8, '\0');
  const auto first = xzipped("one, "), second = xzipped("two");
  for (const auto& packed :
       {first + second, first + padding + second, first + second + padding, first + xzipped("") + padding + second}) {
    write_file(file, packed);
    CHECK(error_text(read_whole(file, 8)) == "");
    CHECK(read_whole(file, 8).value() == "one, two");
    CHECK(byte_stream::open(file)->content_bytes().value() == 8);
  }
  const auto content = noise();
  write_file(file, xzipped(content) + xzipped(content) + std::string(4, '\0'));
  CHECK(read_whole(file, 2 * content.size()).value() == content + content);
  write_file(file, first + std::string(3, '\0') + second);
  CHECK_THAT(error_text(read_whole(file, 8)),
             ContainsSubstring("byte " + std::to_string(first.size()) +
                               ": error: 3 zeros follow the end of the xz data, where a "
                               "multiple of 4 is allowed"));
  write_file(file, first + padding + "junk");
  CHECK_THAT(error_text(read_whole(file, 5)), ContainsSubstring("byte " + std::to_string(first.size() + 8) +
                                                                ": error: bytes follow the end of the xz data"));
  write_file(file, first + second.substr(0, second.size() - 3));
  CHECK_THAT(error_text(read_whole(file, 8)), ContainsSubstring("truncated, fetch it again"));
}

TEST_CASE("zero padding between and after gzip members is skipped", "[data]") {
  const scratch_folder folder;
  const std::string padding(300'000, '\0'); // more than one buffer
  write_file(folder.path() / "a.gz", gzipped("one, ") + padding + gzipped("two") + padding);
  CHECK(error_text(read_whole(folder.path() / "a.gz", 8)) == "");
  CHECK(read_whole(folder.path() / "a.gz", 8).value() == "one, two");
  CHECK(byte_stream::open(folder.path() / "a.gz")->content_bytes().value() == 8);
}

TEST_CASE("a truncated file is refused with the offset of its end", "[data]") {
  const scratch_folder folder;
  const auto content = noise();
  write_file(folder.path() / "a", content.substr(0, 70'000));
  CHECK_THAT(error_text(read_whole(folder.path() / "a", content.size())),
             ContainsSubstring("/a: byte 70000: error: the content ends here, 30000 bytes too early"));
  for (const std::string suffix : {".gz", ".xz"}) {
    INFO(suffix);
    const auto packed = suffix == ".gz" ? gzipped(content) : xzipped(content);
    for (const std::size_t kept : {packed.size() / 2, packed.size() - 3, std::size_t{7}}) {
      write_file(folder.path() / ("b" + suffix), packed.substr(0, kept));
      CHECK_THAT(error_text(read_whole(folder.path() / ("b" + suffix), content.size())),
                 ContainsSubstring("/b" + suffix + ": byte " + std::to_string(kept)) &&
                     ContainsSubstring("truncated, fetch it again"));
    }
  }
  write_file(folder.path() / "b.xz", xzipped(content).substr(0, 70'000));
  CHECK_THAT(error_text(byte_stream::open(folder.path() / "b.xz")->content_bytes()), ContainsSubstring("byte 70000"));
}

TEST_CASE("a packed file with less content than expected is refused with the unpacked offset", "[data]") {
  const scratch_folder folder;
  write_file(folder.path() / "a.gz", gzipped("0123456789"));
  CHECK_THAT(error_text(read_whole(folder.path() / "a.gz", 16)),
             ContainsSubstring("a.gz: unpacked byte 10: error: the content ends here, 6 bytes too early"));
}

TEST_CASE("bytes after the content are refused", "[data]") {
  const scratch_folder folder;
  write_file(folder.path() / "a", "0123456789");
  CHECK_THAT(error_text(read_whole(folder.path() / "a", 8)),
             ContainsSubstring("/a: byte 8: error: the content should end"));
  write_file(folder.path() / "a.gz", gzipped("0123456789"));
  CHECK_THAT(error_text(read_whole(folder.path() / "a.gz", 8)),
             ContainsSubstring("unpacked byte 8: error: the content"));
  for (const std::string junk : {"junk", "\x1f", "\x1f\x8b"}) {
    const auto gz = gzipped("0123456789"), xz = xzipped("0123456789");
    write_file(folder.path() / "b.gz", gz + junk);
    CHECK(error_text(read_whole(folder.path() / "b.gz", 10)) != "");
    write_file(folder.path() / "b.xz", xz + junk);
    CHECK_THAT(error_text(read_whole(folder.path() / "b.xz", 10)),
               ContainsSubstring("b.xz: byte " + std::to_string(xz.size()) + ": error: bytes follow the end"));
  }
  const auto gz = gzipped("0123456789");
  write_file(folder.path() / "b.gz", gz + "junk");
  CHECK_THAT(
      error_text(read_whole(folder.path() / "b.gz", 10)),
      ContainsSubstring("b.gz: byte " + std::to_string(gz.size()) + ": error: bytes follow the end of the gzip"));
}

TEST_CASE("a corrupt file is refused, by its codes or by its checksum", "[data]") {
  const scratch_folder folder;
  const auto content = noise();
  auto gz = gzipped(content), xz = xzipped(content);
  gz[gz.size() - 6] ^= 1; // CRC-32
  write_file(folder.path() / "a.gz", gz);
  CHECK_THAT(error_text(read_whole(folder.path() / "a.gz", content.size())),
             ContainsSubstring("a.gz: byte") && ContainsSubstring("the gzip data are corrupt (incorrect data check)"));
  xz[xz.size() / 2] ^= 1;
  write_file(folder.path() / "a.xz", xz);
  CHECK_THAT(error_text(read_whole(folder.path() / "a.xz", content.size())),
             ContainsSubstring("a.xz: byte") && ContainsSubstring("the xz data are corrupt"));
}

TEST_CASE("a name that does not fit the compression is refused, with the correct name", "[data]") {
  const scratch_folder folder;
  write_file(folder.path() / "a.gz", "plain bytes");
  CHECK_THAT(error_text(byte_stream::open(folder.path() / "a.gz")),
             ContainsSubstring("a.gz: byte 0: error: the name ends with .gz, but this is not a gzip file"));
  write_file(folder.path() / "a", xzipped("content"));
  CHECK_THAT(error_text(byte_stream::open(folder.path() / "a")),
             ContainsSubstring("these are xz data: add .xz to the name"));
}

TEST_CASE("an empty file and a folder in place of a file are refused by name", "[data]") {
  const scratch_folder folder;
  write_file(folder.path() / "a", "");
  CHECK_THAT(error_text(byte_stream::open(folder.path() / "a")),
             ContainsSubstring("/a: byte 0: error: the file is empty"));
  std::filesystem::create_directory(folder.path() / "b.gz");
  CHECK_THAT(error_text(byte_stream::open(folder.path() / "b.gz")), ContainsSubstring("/b.gz: error: is a folder"));
  CHECK_THAT(error_text(byte_stream::open(folder.path() / "c")), ContainsSubstring("/c: error: "));
}
