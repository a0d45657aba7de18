#include "strategies/osi_fl/diffusion/vocabulary.hpp"
#include "strategies/osi_fl/diffusion/unicode_points.hpp"
#include <fmt/format.h>
#include <nlohmann/json.hpp>
namespace mneme {
namespace {

using json = nlohmann::json;

struct entry {
  std::string token{};
  std::uint64_t number = 0;
};

/// Collects the entries of one object {"token": 5, ..}. Error texts count entries from 1.
class entry_collector final : public nlohmann::json_sax<json> {
public:
  std::vector<entry> entries{};
  std::string error{};

  bool start_object(std::size_t) override { return depth_++ == 0 || refuse(); }
  bool end_object() override { return true; }
  bool key(string_t& name) override {
    entries.push_back({.token = std::move(name)});
    return true;
  }
  bool number_unsigned(number_unsigned_t value) override {
    if (entries.empty())
      return refuse();
    entries.back().number = value;
    return true;
  }
  bool start_array(std::size_t) override { return refuse(); }
  bool end_array() override { return refuse(); }
  bool null() override { return refuse(); }
  bool boolean(bool) override { return refuse(); }
  bool number_integer(number_integer_t) override { return refuse(); }
  bool number_float(number_float_t, const string_t&) override { return refuse(); }
  bool string(string_t&) override { return refuse(); }
  bool binary(binary_t&) override { return refuse(); }
  bool parse_error(std::size_t position, const std::string&, const json::exception&) override {
    error = fmt::format("byte {}: is not valid JSON; is this a complete vocab.json?", position > 0 ? position - 1 : 0);
    return false;
  }

private:
  bool refuse() {
    error = fmt::format("entry {}: expected one object of tokens and whole numbers from 0, as vocab.json has them",
                        std::max<std::size_t>(entries.size(), 1));
    return false;
  }
  int depth_ = 0;
};

std::array<char32_t, 256> new_byte_letters() {
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
  static const auto letters = new_byte_letters();
  return letters;
}

std::int64_t vocabulary::number_of(const std::string& token) const {
  const auto entry = numbers.find(token);
  return entry == numbers.end() ? -1 : entry->second;
}

tl::expected<vocabulary, std::string> read_vocabulary(std::string_view text) {
  entry_collector read;
  if (!json::sax_parse(text, &read))
    return tl::unexpected(std::move(read.error));
  const auto count = read.entries.size();
  vocabulary known;
  known.tokens.resize(count);
  std::vector<bool> taken(count);
  for (std::size_t i = 0; i < count; ++i) {
    const auto& [token, number] = read.entries[i];
    if (!known.numbers.try_emplace(token, static_cast<std::int64_t>(number)).second)
      return tl::unexpected(fmt::format("entry {}: '{}' occurs twice", i + 1, token));
    if (number >= count || taken[number])
      return tl::unexpected(fmt::format("entry {}: number {} of '{}' is {}; {} tokens count from 0 without a gap",
                                        i + 1, number, token, number >= count ? "too large" : "used twice", count));
    taken[number] = true;
    known.tokens[number] = token;
  }
  return known;
}

} // namespace mneme
