/// svg_to_png: converts SVG to PNG with rsvg-convert, a program of librsvg (installed by tools/bootstrap).
#pragma once
#include "runtime/base/diagnostic.hpp"
#include <filesystem>
#include <string_view>
namespace mneme {

/// Writes the file atomically, with two pixels per SVG unit and the machine's sans-serif font. Fails if rsvg-convert is
/// not in $PATH, or with the program's own error message.
[[nodiscard]] expected<void> write_png(const std::filesystem::path& file, std::string_view svg);

} // namespace mneme
