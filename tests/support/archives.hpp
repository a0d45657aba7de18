/// archives: zip archives built by tests, entry by entry.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>
#include <zlib.h>
namespace mneme::test {

using archive_entries = std::vector<std::pair<std::string, std::string>>; ///< name and content

/// Bytes of `value` as an integer of `bytes` bytes, little-endian.
inline std::string little_endian(std::uint64_t value, std::size_t bytes) {
  std::string text;
  for (std::size_t i = 0; i < bytes; ++i)
    text += static_cast<char>(value >> (8 * i) & 0xff);
  return text;
}

/// Raw deflate stream of `content`.
inline std::string deflated(const std::string& content) {
  z_stream stream{};
  ::deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  std::string packed(::deflateBound(&stream, content.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
  stream.avail_in = static_cast<uInt>(content.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  ::deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  ::deflateEnd(&stream);
  return packed;
}

/// Makes an archive. Entries whose names end with `deflated_ending` are deflated; "": none.
inline std::string zip_of(const archive_entries& entries, const std::string& deflated_ending = "") {
  std::string file, directory;
  for (const auto& [name, original] : entries) {
    const bool is_deflated = !deflated_ending.empty() && name.ends_with(deflated_ending);
    const auto content = is_deflated ? deflated(original) : original;
    const auto checksum =
        ::crc32(0, reinterpret_cast<const Bytef*>(original.data()), static_cast<uInt>(original.size()));
    const auto common = little_endian(0, 2) + little_endian(is_deflated ? 8 : 0, 2) + little_endian(0, 4) +
                        little_endian(checksum, 4) + little_endian(content.size(), 4) +
                        little_endian(original.size(), 4) + little_endian(name.size(), 2) + little_endian(0, 2);
    directory += "PK\x01\x02" + little_endian(20, 2) + little_endian(20, 2) + common + little_endian(0, 10) +
                 little_endian(file.size(), 4) + name;
    file += "PK\x03\x04" + little_endian(20, 2) + common + name + content;
  }
  return file + directory + "PK\x05\x06" + little_endian(0, 4) + little_endian(entries.size(), 2) +
         little_endian(entries.size(), 2) + little_endian(directory.size(), 4) + little_endian(file.size(), 4) +
         little_endian(0, 2);
}

} // namespace mneme::test
