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

/// Makes an archive with uncompressed entries.
inline std::string zip_of(const archive_entries& entries) {
  std::string file, directory;
  for (const auto& [name, content] : entries) {
    const auto checksum = ::crc32(0, reinterpret_cast<const Bytef*>(content.data()), static_cast<uInt>(content.size()));
    const auto common = little_endian(0, 8) + little_endian(checksum, 4) + little_endian(content.size(), 4) +
                        little_endian(content.size(), 4) + little_endian(name.size(), 2) + little_endian(0, 2);
    directory += "PK\x01\x02" + little_endian(20, 2) + little_endian(20, 2) + common + little_endian(0, 10) +
                 little_endian(file.size(), 4) + name;
    file += "PK\x03\x04" + little_endian(20, 2) + common + name + content;
  }
  return file + directory + "PK\x05\x06" + little_endian(0, 4) + little_endian(entries.size(), 2) +
         little_endian(entries.size(), 2) + little_endian(directory.size(), 4) + little_endian(file.size(), 4) +
         little_endian(0, 2);
}

} // namespace mneme::test
