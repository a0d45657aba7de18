/// text_tokens: a text as the numbers that CLIP's text encoders read.
#pragma once
#include "strategies/osi_fl/diffusion/vocabulary.hpp"
#include <utility>
namespace mneme {

/// Byte-pair encoding (Sennrich et al. 2016) as CLIP has it (Radford et al. 2021): small letters, words, single digits
/// and runs of other signs apart, bytes as letters, "</w>" at a word's end. The numbers are those of transformers'
/// CLIPTokenizer, but letters of several points are not composed first.
class text_tokens {
public:
  /// @param json vocab.json @param merges merges.txt: a version, then pairs, the first merged first. Fails in words,
  /// with byte or line.
  [[nodiscard]] static tl::expected<text_tokens, std::string> read(std::string_view json, std::string_view merges);

  /// Numbers of the text between those of start and end, cut to `length`, filled up with the end's. @pre length >= 2
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
