/// vocabulary: the tokens of a tokenizer and their numbers, as the library transformers stores them (vocab.json).
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>
namespace mneme {

/// Tokens spell bytes by letters: bytes that print stand for themselves, the others follow from U+0100 on (Radford et
/// al. 2019, GPT-2).
[[nodiscard]] const std::array<char32_t, 256>& byte_letters();

struct vocabulary {
  std::vector<std::string> tokens{};             ///< [V] by number
  std::map<std::string, std::int64_t> numbers{}; ///< of each token
  [[nodiscard]] std::int64_t size() const noexcept { return std::ssize(tokens); }
  /// -1: it is not there.
  [[nodiscard]] std::int64_t number_of(const std::string& token) const;
};

/// Reads one JSON object of tokens and their numbers, which count from 0 without a gap. Fails in words, with the entry
/// (from 1) or the byte.
[[nodiscard]] tl::expected<vocabulary, std::string> read_vocabulary(std::string_view text);

} // namespace mneme
