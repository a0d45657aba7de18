/// zip_archive: entries of a zip file, validated to the last byte before use.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <tl/expected.hpp>
#include <vector>
namespace mneme {

struct zip_entry {
  std::string name{};
  std::uint64_t header = 0, begin = 0; ///< Offsets of the entry's header and content.
  std::uint64_t stored_bytes = 0;      ///< In the file.
  std::uint64_t bytes = 0;             ///< Uncompressed.
  bool deflated = false;
  std::uint32_t checksum = 0; ///< CRC-32 of the uncompressed content.
};

/// Error in a zip file, with the offset.
struct zip_flaw {
  std::uint64_t byte = 0;
  std::string text{};
};

/// Returns the entries of `file` in the order of their content. Checks that entries lie in the file and do not overlap,
/// that names differ, and that every content has the stated size and checksum. Compressed contents may have
/// `inflated_bytes_max` bytes in total; they are decompressed in pieces without being stored.
[[nodiscard]] tl::expected<std::vector<zip_entry>, zip_flaw> zip_entries(std::span<const std::uint8_t> file,
                                                                         std::uint64_t inflated_bytes_max);

/// Passes the content of one of these entries to a function, piece by piece.
void zip_pieces(std::span<const std::uint8_t> file, const zip_entry& entry,
                const std::function<void(std::span<const std::uint8_t>)>& use);

/// Returns the content of one of these entries.
[[nodiscard]] std::string zip_content(std::span<const std::uint8_t> file, const zip_entry& entry);

} // namespace mneme
