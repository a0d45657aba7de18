/// npy: one array of NumPy, as a .npy file or a member of an .npz archive has it.
#pragma once
#include <ATen/core/Tensor.h>
#include <cstdint>
#include <span>
#include <string>
#include <tl/expected.hpp>
#include <vector>
namespace mneme {

/// Numbers, or texts.
struct npy_array {
  at::Tensor values{};              ///< Undefined: the array holds texts.
  std::vector<std::string> texts{}; ///< UTF-8, in order; blanks and zeros behind them are cut off.
};

/// "float32", as NumPy calls it.
[[nodiscard]] std::string numpy_word(at::ScalarType type);

/// What a header says. Versions 1, 2 and 3 of the format.
struct npy_header {
  at::ScalarType type = at::kByte;
  bool high_bytes_first = false;                  ///< The order of the bytes in each number or letter.
  bool holds_texts = false, wide_letters = false; ///< Texts of bytes (S), or of four bytes a letter (U).
  std::int64_t text_letters = 0;                  ///< In each text.
  bool by_columns = false;                        ///< The first axis runs fastest (Fortran's order).
  std::vector<std::int64_t> shape{};
  std::uint64_t begin = 0, bytes = 0; ///< Where the values begin, and their bytes.
};

/// Takes an array in pieces, as files and archives hand them on. No memory is taken before the header's sizes have
/// been compared with those of the file.
class npy_reader {
public:
  /// @param bytes of the whole array, header included
  explicit npy_reader(std::uint64_t bytes) : bytes_(bytes) {}

  /// False: something is wrong, and no further piece is wanted.
  [[nodiscard]] bool feed(std::span<const std::uint8_t> piece);
  /// The array, once every byte was fed; or what is wrong with it, in words.
  [[nodiscard]] tl::expected<npy_array, std::string> finish();

private:
  bool refuse(std::string text);
  bool read_lengths();
  bool begin(); // once the header is there
  [[nodiscard]] std::vector<std::string> texts() const;

  std::uint64_t bytes_;
  std::vector<std::uint8_t> front_; // the header, as far as it was fed
  std::string wrong_;
  npy_header header_;
  std::size_t length_bytes_ = 0;
  at::Tensor values_;        // texts: their bytes
  std::uint64_t filled_ = 0; // bytes of the values
};

} // namespace mneme
