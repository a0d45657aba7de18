/// text_tokens: tokenizer of CLIP's text encoders.
#pragma once
#include "strategies/osi_fl/diffusion/vocabulary.hpp"
#include <utility>
namespace mneme {

/// Byte-pair encoding (Sennrich et al. 2016) as in CLIP (Radford et al. 2021). Text is lowercased and split into words,
/// single digits and runs of other characters. Bytes are mapped to letters, and "</w>" ends a word. The numbers equal
/// those of CLIPTokenizer of the library transformers, except that combining characters are not composed first.
class text_tokens {
public:
  /// Reads the vocabulary and the merges. Returns an error text with byte or line if a file is malformed.
  /// @param json vocab.json @param merges merges.txt: an optional version line, then pairs in order of priority
  [[nodiscard]] static tl::expected<text_tokens, std::string> read(std::string_view json, std::string_view merges);

  /// Returns start token, tokens of the text and end token, truncated to `length` and padded with the end token. @pre
  /// length >= 2
  [[nodiscard]] std::vector<std::int64_t> numbers(std::string_view text, std::int64_t length) const;
  [[nodiscard]] std::int64_t size() const noexcept { return known_.size(); }

private:
  void add_plain(std::u32string_view text, std::vector<std::int64_t>& into) const;
  void add_piece(std::u32string_view piece, std::vector<std::int64_t>& into) const;

  vocabulary known_{};
  std::map<std::pair<std::string, std::string>, std::size_t> ranks_{};
  std::int64_t start_ = 0, end_ = 0;
};

} // namespace mneme
