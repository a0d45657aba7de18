#include "strategies/osi_fl/diffusion/text_tokens.hpp"
#include "strategies/osi_fl/diffusion/unicode_points.hpp"
#include <algorithm>
#include <fmt/format.h>
#include <limits>
namespace mneme {
namespace {

constexpr const char *start_token = "<|startoftext|>", *end_token = "<|endoftext|>", *word_end = "</w>";

std::string letter_of(std::uint8_t byte) {
  std::string letter;
  add_point(letter, byte_letters()[byte]);
  return letter;
}

/// Length of a contraction ('s, 't, 're, 've, 'm, 'll or 'd) at the start of `text`, in code points; 0 if there is
/// none.
std::size_t contraction_at(std::u32string_view text) {
  for (const auto* const form : {U"'s", U"'t", U"'re", U"'ve", U"'m", U"'ll", U"'d"})
    if (text.starts_with(form))
      return std::u32string_view(form).size();
  return 0;
}

/// Length of the first piece of `text`, in code points. @pre text does not start with a space
std::size_t piece_at(std::u32string_view text) {
  if (const auto contraction = contraction_at(text))
    return contraction;
  if (is_number_point(text[0]))
    return 1;
  const auto is_other = [](char32_t point) {
    return !is_letter_point(point) && !is_number_point(point) && !is_space_point(point);
  };
  const auto* const end = is_letter_point(text[0]) ? std::find_if_not(text.begin(), text.end(), is_letter_point)
                                                   : std::find_if_not(text.begin(), text.end(), is_other);
  return static_cast<std::size_t>(end - text.begin());
}

tl::expected<std::map<std::pair<std::string, std::string>, std::size_t>, std::string>
read_merges(std::string_view text, const vocabulary& known) {
  std::map<std::pair<std::string, std::string>, std::size_t> ranks;
  for (std::size_t line = 1; !text.empty(); ++line) {
    const auto end = std::min(text.find('\n'), text.size());
    auto pair = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (pair.ends_with('\r'))
      pair.remove_suffix(1);
    if (pair.empty() || (line == 1 && pair.starts_with("#version")))
      continue;
    const auto space = pair.find(' ');
    if (space == 0 || space == std::string_view::npos || pair.find(' ', space + 1) != std::string_view::npos ||
        space + 1 == pair.size())
      return tl::unexpected(
          fmt::format("line {}: expected two tokens with a space between them, as in merges.txt", line));
    const std::string left(pair.substr(0, space)), right(pair.substr(space + 1));
    if (known.number_of(left + right) < 0)
      return tl::unexpected(
          fmt::format("line {}: '{}' is not a token of the vocabulary; expected the merges of the same tokenizer", line,
                      left + right));
    ranks.try_emplace({left, right}, ranks.size());
  }
  return ranks;
}

} // namespace

tl::expected<text_tokens, std::string> text_tokens::read(std::string_view json, std::string_view merges) {
  auto known = read_vocabulary(json);
  if (!known)
    return tl::unexpected(known.error());
  text_tokens tokens;
  tokens.known_ = std::move(*known);
  std::vector<std::string> required{start_token, end_token};
  for (std::uint32_t byte = 0; byte < 256; ++byte)
    for (const auto* const end : {"", word_end})
      required.push_back(letter_of(static_cast<std::uint8_t>(byte)) + end);
  for (const auto& token : required)
    if (tokens.known_.number_of(token) < 0)
      return tl::unexpected(fmt::format("the vocabulary lacks '{}'; expected that of CLIP's tokenizer", token));
  auto ranks = read_merges(merges, tokens.known_);
  if (!ranks)
    return tl::unexpected(ranks.error());
  tokens.ranks_ = std::move(*ranks);
  tokens.start_ = tokens.known_.number_of(start_token);
  tokens.end_ = tokens.known_.number_of(end_token);
  return tokens;
}

std::vector<std::int64_t> text_tokens::numbers(std::string_view text, std::int64_t length) const {
  std::vector<std::int64_t> numbers_of_tokens{start_};
  while (!text.empty()) { // special tokens are not split into pieces
    const auto start = text.find(start_token), end = text.find(end_token), next = std::min(start, end);
    add_plain(to_lower(points_of(text.substr(0, next))), numbers_of_tokens);
    if (next == std::string_view::npos)
      break;
    numbers_of_tokens.push_back(next == start ? start_ : end_);
    text.remove_prefix(next + std::string_view(next == start ? start_token : end_token).size());
  }
  numbers_of_tokens.resize(std::min(numbers_of_tokens.size(), static_cast<std::size_t>(length) - 1));
  numbers_of_tokens.resize(static_cast<std::size_t>(length), end_);
  return numbers_of_tokens;
}

void text_tokens::add_plain(std::u32string_view text, std::vector<std::int64_t>& into) const {
  while (!text.empty()) {
    const auto taken = is_space_point(text[0]) ? 1 : piece_at(text);
    if (!is_space_point(text[0]))
      add_piece(text.substr(0, taken), into);
    text.remove_prefix(taken);
  }
}

/// Repeatedly merges the pair with the lowest rank, until no pair has a rank. Of equal pairs, the first is merged.
void text_tokens::add_piece(std::u32string_view piece, std::vector<std::int64_t>& into) const {
  std::vector<std::string> parts;
  for (const auto byte : bytes_of(piece))
    parts.push_back(letter_of(static_cast<std::uint8_t>(byte)));
  parts.back() += word_end;
  for (;;) {
    auto lowest = std::numeric_limits<std::size_t>::max();
    std::size_t where = 0;
    for (std::size_t i = 0; i + 1 < parts.size(); ++i)
      if (const auto rank = ranks_.find({parts[i], parts[i + 1]}); rank != ranks_.end() && rank->second < lowest) {
        lowest = rank->second;
        where = i;
      }
    if (lowest == std::numeric_limits<std::size_t>::max())
      break;
    parts[where] += parts[where + 1];
    parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(where) + 1);
  }
  for (const auto& part : parts)
    into.push_back(known_.number_of(part));
}

} // namespace mneme
