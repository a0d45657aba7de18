/// elapsed_text: formats a duration.
#pragma once
#include <string>
namespace mneme {

/// Formats "12.3 s", "4 min 05 s", "3 h 07 min" or "2 d 04 h". @pre seconds >= 0
[[nodiscard]] std::string elapsed_text(double seconds);

} // namespace mneme
