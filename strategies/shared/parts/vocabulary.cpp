#include "strategies/shared/parts/vocabulary.hpp"
#include "strategies/shared/parts/unicode_points.hpp"
#include <charconv>
#include <fmt/format.h>
#include <stdexcept>
namespace mneme {
namespace {

struct json_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Goes through {"token": 5, ..}.
class pair_reader {
public:
  explicit pair_reader(std::string_view text) : text_(text) {}

  template <class Use>
  void each(const Use& use) {
    expect('{');
    if (!accept('}'))
      do {
        skip_spaces();
        const auto start = at_;
        auto token = word();
        expect(':');
        use(start, std::move(token), number());
      } while (!accept('}') && (expect(','), true));
    skip_spaces();
    if (at_ < text_.size())
      fail("the end of the file");
  }

private:
  [[noreturn]] void fail(const std::string& expected) const {
    throw json_error(
        fmt::format("byte {}: expected {} of one object of tokens and numbers, as vocab.json has them", at_, expected));
  }
  void skip_spaces() { at_ = std::min(text_.find_first_not_of(" \t\r\n", at_), text_.size()); }
  bool accept(char letter) {
    skip_spaces();
    if (at_ >= text_.size() || text_[at_] != letter)
      return false;
    ++at_;
    return true;
  }
  void expect(char letter) {
    if (!accept(letter))
      fail(fmt::format("'{}'", letter));
  }

  std::int64_t number() {
    skip_spaces();
    std::int64_t value = 0;
    const auto* const first = text_.data() + at_;
    const auto [end, error] = std::from_chars(first, text_.data() + text_.size(), value);
    if (error != std::errc{} || value < 0)
      fail("a whole number");
    at_ += static_cast<std::size_t>(end - first);
    return value;
  }

  std::string word() {
    expect('"');
    std::string made;
    for (;;) {
      const auto next = std::min(text_.find_first_of("\"\\", at_), text_.size());
      made += text_.substr(at_, next - at_);
      at_ = next + 1;
      if (next >= text_.size())
        fail("the end of a token");
      if (text_[next] == '"')
        return made;
      escaped(made);
    }
  }

  void escaped(std::string& into) {
    constexpr std::string_view names = "\"\\/bfnrt", meant = "\"\\/\b\f\n\r\t";
    const auto letter = at_ < text_.size() ? text_[at_++] : '\0';
    if (letter == 'u')
      return add_point(into, escaped_point());
    const auto which = names.find(letter);
    if (which == std::string_view::npos)
      fail("an escape");
    into += meant[which];
  }

  char32_t escaped_point() {
    const auto high = four_digits();
    if (high < 0xD800 || high > 0xDBFF)
      return high;
    if (text_.substr(at_, 2) != "\\u")
      fail("the second half of a letter");
    at_ += 2;
    return 0x10000 + ((high - 0xD800) << 10U) + (four_digits() - 0xDC00);
  }
  char32_t four_digits() {
    std::uint32_t value = 0;
    const auto digits = text_.substr(std::min(at_, text_.size()), 4);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
    if (digits.size() < 4 || error != std::errc{} || end != digits.data() + 4)
      fail("four hexadecimal digits");
    at_ += 4;
    return value;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

std::array<char32_t, 256> made_byte_letters() {
  std::array<char32_t, 256> letters{};
  char32_t others = 0;
  for (std::uint32_t byte = 0; byte < letters.size(); ++byte) {
    const bool prints = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
    letters[byte] = prints ? byte : 0x100 + others++;
  }
  return letters;
}

} // namespace

const std::array<char32_t, 256>& byte_letters() {
  static const auto letters = made_byte_letters();
  return letters;
}

std::int64_t vocabulary::number_of(const std::string& token) const {
  const auto found = numbers.find(token);
  return found == numbers.end() ? -1 : found->second;
}

tl::expected<vocabulary, std::string> read_vocabulary(std::string_view json) {
  vocabulary made;
  std::vector<std::pair<std::size_t, std::int64_t>> places; // of tokens in the file, and their numbers
  try {
    pair_reader(json).each([&](std::size_t at, std::string token, std::int64_t number) {
      if (!made.numbers.try_emplace(token, number).second)
        throw json_error(fmt::format("byte {}: '{}' is there twice", at, token));
      places.emplace_back(at, number);
    });
  } catch (const json_error& e) {
    return tl::unexpected(std::string(e.what()));
  }
  made.tokens.resize(places.size());
  std::vector<bool> taken(places.size());
  for (const auto& [at, number] : places) {
    if (number >= std::ssize(places) || taken[static_cast<std::size_t>(number)])
      return tl::unexpected(fmt::format("byte {}: number {} is {}; {} tokens count from 0 without a gap", at, number,
                                        number >= std::ssize(places) ? "too large" : "there twice", places.size()));
    taken[static_cast<std::size_t>(number)] = true;
  }
  for (const auto& [token, number] : made.numbers)
    made.tokens[static_cast<std::size_t>(number)] = token;
  return made;
}

} // namespace mneme
