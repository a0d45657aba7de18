/// npy: reads one NumPy array, from a .npy file or a member of an .npz archive.
#pragma once
#include <ATen/core/Tensor.h>
#include <cstdint>
#include <span>
#include <string>
#include <tl/expected.hpp>
#include <vector>
namespace mneme {

/// An array of numbers or of strings.
struct npy_array {
  at::Tensor values{};              ///< Undefined for an array of strings.
  std::vector<std::string> texts{}; ///< UTF-8, in order, without trailing blanks and zeros.
};

/// NumPy's name of a type, such as "float32".
[[nodiscard]] std::string numpy_word(at::ScalarType type);

/// Header of format version 1, 2 or 3.
struct npy_header {
  at::ScalarType type = at::kByte;
  bool high_bytes_first = false;                  ///< Big-endian numbers or characters.
  bool holds_texts = false, wide_letters = false; ///< Strings of bytes (S), or of four-byte characters (U).
  std::int64_t text_letters = 0;                  ///< Length of each string.
  bool by_columns = false;                        ///< Fortran order: the first axis varies fastest.
  std::vector<std::int64_t> shape{};
  std::uint64_t begin = 0, bytes = 0; ///< Offset and size of the values.
};

/// Parses an array in pieces, as read from a file or archive. Memory is allocated only after the sizes in the header
/// have been compared with the size of the file.
class npy_reader {
public:
  /// @param bytes of the whole array, including the header
  explicit npy_reader(std::uint64_t bytes) : bytes_(bytes) {}

  /// Returns false after an error; then no more pieces are needed.
  [[nodiscard]] bool feed(std::span<const std::uint8_t> piece);
  /// Returns the array after all bytes were fed, or an error text.
  [[nodiscard]] tl::expected<npy_array, std::string> finish();

private:
  bool refuse(std::string text);
  bool read_lengths();
  bool begin(); // called when the header is complete
  [[nodiscard]] std::vector<std::string> texts() const;

  std::uint64_t bytes_;
  std::vector<std::uint8_t> front_; // bytes of the header so far
  std::string wrong_;
  npy_header header_;
  std::size_t length_bytes_ = 0;
  at::Tensor values_;        // for strings: their bytes
  std::uint64_t filled_ = 0; // value bytes so far
};

} // namespace mneme
