/// unicode_points: Unicode categories as the tokenizers of the library transformers define them, and UTF-8 conversion.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
namespace mneme {

[[nodiscard]] bool is_letter_point(char32_t point); ///< \p{L}
[[nodiscard]] bool is_number_point(char32_t point); ///< \p{N}
[[nodiscard]] bool is_space_point(char32_t point);  ///< \s
/// Converts to lowercase, one code point at a time.
[[nodiscard]] std::u32string to_lower(std::u32string_view text);

/// Decodes UTF-8. Each maximal part of an incomplete character becomes U+FFFD.
[[nodiscard]] std::u32string points_of(std::string_view bytes);
/// Encodes code points as UTF-8.
[[nodiscard]] std::string bytes_of(std::u32string_view points);
/// Appends a code point to UTF-8 text.
void add_point(std::string& text, char32_t point);

} // namespace mneme
