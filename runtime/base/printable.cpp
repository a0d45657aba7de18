#include "runtime/base/printable.hpp"
namespace mneme {

std::string printable(std::string_view text) {
  std::string shown;
  shown.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto code = static_cast<unsigned char>(text[i]);
    // U+0080 to U+009F are control characters too, and UTF-8 writes them as C2 80 to C2 9F.
    const bool second_set = code == 0xC2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) >= 0x80 &&
                            static_cast<unsigned char>(text[i + 1]) < 0xA0;
    const bool obeyed = (code < 0x20 && code != '\t' && code != '\n') || code == 0x7F;
    shown += second_set || obeyed ? '?' : text[i];
    i += second_set ? 1 : 0;
  }
  return shown;
}

} // namespace mneme
