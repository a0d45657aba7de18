/// picture_bytes: the bytes of a file that holds one picture.
#pragma once
#include "runtime/base/diagnostic.hpp"
#include <cstdint>
#include <filesystem>
#include <vector>
namespace mneme {

/// All of them; a file of more than 256 MiB is refused unread.
[[nodiscard]] expected<std::vector<std::uint8_t>> picture_bytes(const std::filesystem::path& file);

} // namespace mneme
