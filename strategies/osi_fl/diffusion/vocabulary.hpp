/// vocabulary: the tokens of a tokenizer and their numbers, as stored by the library transformers (vocab.json).
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>
namespace mneme {

/// Mapping of bytes to letters: printable bytes map to themselves, the others to U+0100 and following (Radford et al.
/// 2019, GPT-2).
[[nodiscard]] const std::array<char32_t, 256>& byte_letters();

/// Tokens and their numbers.
struct vocabulary {
  std::vector<std::string> tokens{};             ///< [V] tokens by number
  std::map<std::string, std::int64_t> numbers{}; ///< number of each token
  [[nodiscard]] std::int64_t size() const noexcept { return std::ssize(tokens); }
  /// Returns the number of a token, or -1 if the vocabulary lacks it.
  [[nodiscard]] std::int64_t number_of(const std::string& token) const;
};

/// Reads one JSON object of tokens and numbers, which must be 0 .. V - 1. Returns an error text with the entry (from 1)
/// or the byte otherwise.
[[nodiscard]] tl::expected<vocabulary, std::string> read_vocabulary(std::string_view text);

} // namespace mneme
