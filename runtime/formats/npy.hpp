/// npy: reads one NumPy array from a .npy file or a member of an .npz archive.
#pragma once
#include <ATen/core/Tensor.h>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <tl/expected.hpp>
#include <vector>
namespace mneme {

/// A NumPy array of numbers or of strings.
struct npy_array {
  at::Tensor values{};              ///< Undefined for an array of strings.
  std::vector<std::string> texts{}; ///< The strings as UTF-8, in array order, without trailing blanks and zeros.
};

/// NumPy's name of a dtype, such as "float32".
[[nodiscard]] std::string numpy_word(at::ScalarType type);

/// Parsed header of a .npy file, whose format version is 1, 2 or 3.
struct npy_header {
  at::ScalarType type = at::kByte;
  bool high_bytes_first = false;                  ///< Numbers or characters are big-endian.
  bool holds_texts = false, wide_letters = false; ///< True: strings of bytes (S), or of four-byte characters (U).
  std::int64_t text_letters = 0;                  ///< Length of each string in characters.
  bool by_columns = false;                        ///< Fortran order: the first axis varies fastest.
  std::vector<std::int64_t> shape{};
  std::uint64_t begin = 0, bytes = 0; ///< Offset and size of the values in bytes.
};

/// Parses an array that arrives in pieces. The reader checks the sizes in the header against the size of the file
/// before it allocates memory.
class npy_reader {
public:
  /// @param bytes size of the whole array in bytes, including the header
  explicit npy_reader(std::uint64_t bytes) : bytes_(bytes) {}

  /// Parses the header alone. Returns nullopt if `front`, the first bytes of the array, does not hold a valid one.
  [[nodiscard]] static std::optional<npy_header> header_of(std::span<const std::uint8_t> front, std::uint64_t bytes);
  /// Parses the next piece. Returns false after an error; then no more pieces are needed.
  [[nodiscard]] bool feed(std::span<const std::uint8_t> piece);
  /// Returns the array, or the error text. Call after all pieces.
  [[nodiscard]] tl::expected<npy_array, std::string> finish();

private:
  bool refuse(std::string text);
  bool read_lengths();
  bool begin(); // called when the header is complete
  [[nodiscard]] std::vector<std::string> texts() const;

  std::uint64_t bytes_;
  std::vector<std::uint8_t> front_; // header bytes received so far
  std::string errors_;
  npy_header header_;
  std::size_t length_bytes_ = 0;
  at::Tensor values_;        // the values; for strings, their bytes
  std::uint64_t filled_ = 0; // number of value bytes received so far
};

} // namespace mneme
