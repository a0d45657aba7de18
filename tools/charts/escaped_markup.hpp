/// escaped_markup: text in pages and pictures.
#pragma once
#include <string>
namespace mneme {

/// Text escaped for XML and HTML. Control characters, which neither can hold, become spaces; line breaks stay.
[[nodiscard]] std::string escaped_markup(const std::string& text);

} // namespace mneme
