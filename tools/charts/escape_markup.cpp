#include "tools/charts/escape_markup.hpp"
namespace mneme {

std::string escape_markup(const std::string& text) {
  std::string result;
  for (const char letter : text)
    switch (letter) {
    case '&':
      result += "&amp;";
      break;
    case '<':
      result += "&lt;";
      break;
    case '>':
      result += "&gt;";
      break;
    case '"':
      result += "&quot;";
      break;
    default:
      result += static_cast<unsigned char>(letter) < 0x20 && letter != '\n' ? ' ' : letter;
    }
  return result;
}

} // namespace mneme
