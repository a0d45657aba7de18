/// caption_words: a captioner's vocabulary, and decoding of captions to text.
#pragma once
#include "strategies/osi_fl/diffusion/vocabulary.hpp"
#include <span>
namespace mneme {

/// The vocabulary of GPT-2 (Radford et al. 2019). One token marks both start and end of a caption.
class caption_words {
public:
  /// Reads vocab.json. Returns an error text if it is malformed or lacks "<|endoftext|>".
  [[nodiscard]] static tl::expected<caption_words, std::string> read(std::string_view json);

  [[nodiscard]] std::int64_t size() const noexcept { return known_.size(); }
  /// Word number of "<|endoftext|>", which is also the start token.
  [[nodiscard]] std::int64_t end() const noexcept { return end_; }
  /// Decodes a caption as GPT2Tokenizer of the library transformers does, without special tokens and surrounding
  /// spaces. Incomplete UTF-8 becomes U+FFFD.
  [[nodiscard]] std::string text(std::span<const std::int64_t> numbers) const;

private:
  vocabulary known_{};
  std::int64_t end_ = 0;
};

} // namespace mneme
