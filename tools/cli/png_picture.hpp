/// png_picture: a picture in SVG as a PNG, by rsvg-convert, a program of librsvg that tools/bootstrap brings.
#pragma once
#include "runtime/base/diagnostic.hpp"
#include <filesystem>
#include <string_view>
namespace mneme {

/// Two dots for each of its units, words in the machine's sans-serif font. The file is whole or not there. Fails where
/// $PATH has no rsvg-convert, and with its words where it cannot draw.
[[nodiscard]] expected<void> write_png(const std::filesystem::path& file, std::string_view svg);

} // namespace mneme
