#include "strategies/osi_fl/diffusion/caption_words.hpp"
#include "strategies/osi_fl/diffusion/unicode_points.hpp"
#include <algorithm>
namespace mneme {
namespace {

/// True for characters that Python's str.strip() removes.
bool is_stripped(char32_t point) { return is_space_point(point) || (point >= 0x1C && point <= 0x1F); }

} // namespace

tl::expected<caption_words, std::string> caption_words::read(std::string_view json) {
  auto known = read_vocabulary(json);
  if (!known)
    return tl::unexpected(known.error());
  caption_words words;
  words.known_ = std::move(*known);
  words.end_ = words.known_.number_of("<|endoftext|>");
  if (words.end_ < 0)
    return tl::unexpected(std::string("the vocabulary lacks '<|endoftext|>'; expected that of GPT-2's tokenizer"));
  return words;
}

std::string caption_words::text(std::span<const std::int64_t> numbers) const {
  const auto& letters = byte_letters();
  std::string bytes;
  for (const auto number : numbers)
    if (number != end_)
      for (const auto point : points_of(known_.tokens.at(static_cast<std::size_t>(number)))) {
        const auto* const letter = std::find(letters.begin(), letters.end(), point);
        if (letter != letters.end())
          bytes += static_cast<char>(letter - letters.begin());
        else
          add_point(bytes, point);
      }
  const auto points = points_of(bytes);
  const auto first = std::find_if_not(points.begin(), points.end(), is_stripped);
  const auto last = std::find_if_not(points.rbegin(), std::make_reverse_iterator(first), is_stripped).base();
  return bytes_of({first, last});
}

} // namespace mneme
