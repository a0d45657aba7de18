/// array_files: small NumPy arrays and archives of them, valid or damaged.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>
#include <zlib.h>
namespace mneme::test {

inline std::string lowest_first(std::uint64_t number, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i)
    text += static_cast<char>(number >> (8 * i) & 0xFF);
  return text;
}

/// A .npy file with this header, valid or not.
inline std::string npy_with(const std::string& header, const std::string& content) {
  return std::string("\x93NUMPY\x01\x00", 8) + lowest_first(header.size(), 2) + header + content;
}

/// @param shape in Python syntax: "(2, 3)"
inline std::string npy_of(const std::string& type, const std::string& shape, const std::string& content,
                          const char* by_columns = "False") {
  return npy_with("{'descr': '" + type + "', 'fortran_order': " + by_columns + ", 'shape': " + shape + ", }\n",
                  content);
}

template <class Number>
std::string npy_of(const std::string& type, const std::string& shape, const std::vector<Number>& values) {
  return npy_of(type, shape, std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(Number)));
}

/// A zip archive with uncompressed members.
inline std::string zip_of(const std::vector<std::pair<std::string, std::string>>& members) {
  std::string file, lines;
  for (const auto& [name, content] : members) {
    const auto checksum = crc32_z(0, reinterpret_cast<const Bytef*>(content.data()), content.size());
    const auto common = lowest_first(0, 8) + lowest_first(checksum, 4) + lowest_first(content.size(), 4) +
                        lowest_first(content.size(), 4) + lowest_first(name.size(), 2) + lowest_first(0, 2);
    lines += lowest_first(0x02014b50, 4) + lowest_first(20, 4) + common + lowest_first(0, 10) +
             lowest_first(file.size(), 4) + name;
    file += lowest_first(0x04034b50, 4) + lowest_first(20, 2) + common + name + content;
  }
  return file + lines + lowest_first(0x06054b50, 4) + lowest_first(0, 4) + lowest_first(members.size(), 2) +
         lowest_first(members.size(), 2) + lowest_first(lines.size(), 4) + lowest_first(file.size(), 4) +
         lowest_first(0, 2);
}

} // namespace mneme::test
