/// escape_markup: escapes text for XML and HTML.
#pragma once
#include <string>
namespace mneme {

/// Returns escaped text. Control characters, which are not allowed, become spaces; line breaks stay.
[[nodiscard]] std::string escape_markup(const std::string& text);

} // namespace mneme
