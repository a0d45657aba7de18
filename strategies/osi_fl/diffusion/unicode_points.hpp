/// unicode_points: letters, numbers and spaces as tokenizers of the library transformers tell them apart; UTF-8.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
namespace mneme {

[[nodiscard]] bool is_letter_point(char32_t point); ///< \p{L}
[[nodiscard]] bool is_number_point(char32_t point); ///< \p{N}
[[nodiscard]] bool is_space_point(char32_t point);  ///< \s
/// Capitals become small letters, point by point.
[[nodiscard]] std::u32string in_small_letters(std::u32string_view text);

/// UTF-8 to points; U+FFFD stands for every longest piece of a letter that is not whole.
[[nodiscard]] std::u32string points_of(std::string_view bytes);
[[nodiscard]] std::string bytes_of(std::u32string_view points);
void add_point(std::string& text, char32_t point);

} // namespace mneme
