/// caption_words: the words of a captioner, and what a sequence of them says.
#pragma once
#include "strategies/osi_fl/diffusion/vocabulary.hpp"
#include <span>
namespace mneme {

/// The vocabulary of a GPT-2 (Radford et al. 2019), which begins and ends a caption with one token.
class caption_words {
public:
  /// @param json vocab.json. Fails in words.
  [[nodiscard]] static tl::expected<caption_words, std::string> read(std::string_view json);

  [[nodiscard]] std::int64_t size() const noexcept { return known_.size(); }
  /// "<|endoftext|>", which is the start, too.
  [[nodiscard]] std::int64_t end() const noexcept { return end_; }
  /// As transformers' GPT2Tokenizer decodes it, without special tokens and spaces around it: bytes that are no whole
  /// letter are U+FFFD.
  [[nodiscard]] std::string text(std::span<const std::int64_t> numbers) const;

private:
  vocabulary known_{};
  std::int64_t end_ = 0;
};

} // namespace mneme
