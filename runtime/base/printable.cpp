#include "runtime/base/printable.hpp"
#include <cstdint>
namespace mneme {
namespace {

struct character {
  std::uint32_t code = 0;
  std::size_t bytes = 0; ///< Length of the character; 0 if the bytes are not valid UTF-8.
};

/// Decodes the first UTF-8 character. @pre text is not empty
character first_of(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint32_t>(static_cast<unsigned char>(text[i])); };
  const auto lead = byte(0);
  if (lead < 0x80)
    return {.code = lead, .bytes = 1};
  const std::size_t bytes = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < bytes)
    return {};
  std::uint32_t code = lead & (0x7FU >> bytes);
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xC0U) != 0x80)
      return {};
    code = code << 6U | (byte(i) & 0x3FU);
  }
  const bool has_shorter = (bytes == 3 && code < 0x800) || (bytes == 4 && code < 0x10000);
  const bool is_none = (code >= 0xD800 && code < 0xE000) || code > 0x10FFFF;
  return has_shorter || is_none ? character{} : character{.code = code, .bytes = bytes};
}

/// True for characters that control a terminal: control characters, and those that change the writing direction.
bool is_obeyed(std::uint32_t code) {
  return (code < 0x20 && code != '\t' && code != '\n') || (code >= 0x7F && code < 0xA0) ||
         (code >= 0x202A && code <= 0x202E) || (code >= 0x2066 && code <= 0x2069);
}

} // namespace

std::string printable(std::string_view text) {
  std::string shown;
  shown.reserve(text.size());
  while (!text.empty()) {
    const auto next = first_of(text);
    const auto bytes = next.bytes == 0 ? 1 : next.bytes;
    if (next.bytes == 0 || is_obeyed(next.code))
      shown += '?';
    else
      shown += text.substr(0, bytes);
    text.remove_prefix(bytes);
  }
  return shown;
}

std::string printable_message(std::string_view text, std::size_t bytes_max) {
  if (text.size() <= bytes_max)
    return printable(text);
  const auto is_inside = [&](std::size_t at) { return (static_cast<unsigned char>(text[at]) & 0xC0U) == 0x80; };
  auto first = bytes_max / 4 * 3, last = text.size() - bytes_max / 4;
  while (first > 0 && is_inside(first))
    --first; // move to the start of a UTF-8 character
  while (last < text.size() && is_inside(last))
    ++last;
  return printable(text.substr(0, first)) + " ... (" + std::to_string(last - first) + " bytes left out) ... " +
         printable(text.substr(last));
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const auto next = first_of(text);
    if (next.bytes == 0)
      return false;
    text.remove_prefix(next.bytes);
  }
  return true;
}

} // namespace mneme
