/// image_format: detects the format of a file by its first bytes, regardless of its name.
#pragma once
#include <cstdint>
#include <span>
#include <string>
namespace mneme {

/// Formats that read_image() decodes.
enum class image_format : std::uint8_t { png, jpeg, unsupported };

/// Detects the format. @param bytes the first bytes of a file; `format_bytes` of them are sufficient
[[nodiscard]] image_format detect_image_format(std::span<const std::uint8_t> bytes);

/// Describes the content for an error message: "a WebP image", "an HTML page", "text", "no known image format".
[[nodiscard]] std::string describe_content(std::span<const std::uint8_t> bytes);

/// Number of leading bytes that both functions use.
inline constexpr std::size_t format_bytes = 512;

} // namespace mneme
