/// array_files: small NumPy arrays, valid or damaged; zip_of() packs them.
#pragma once
#include "tests/support/archives.hpp"
namespace mneme::test {

/// Content of a .npy file with this header, valid or not.
inline std::string npy_with(const std::string& header, const std::string& content) {
  return std::string("\x93NUMPY\x01\x00", 8) + little_endian(header.size(), 2) + header + content;
}

/// Content of a .npy file. @param shape in Python syntax: "(2, 3)"
inline std::string npy_of(const std::string& type, const std::string& shape, const std::string& content,
                          const char* by_columns = "False") {
  return npy_with("{'descr': '" + type + "', 'fortran_order': " + by_columns + ", 'shape': " + shape + ", }\n",
                  content);
}

template <class Number>
std::string npy_of(const std::string& type, const std::string& shape, const std::vector<Number>& values) {
  return npy_of(type, shape, std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(Number)));
}

} // namespace mneme::test
