/// zip_archive: entries of a zip file, all validated before use.
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
  std::uint64_t header = 0, begin = 0; ///< Byte offsets of the entry's local header and content.
  std::uint64_t stored_bytes = 0;      ///< Size in the file.
  std::uint64_t bytes = 0;             ///< Uncompressed size.
  bool deflated = false;
  std::uint32_t checksum = 0; ///< CRC-32 of the uncompressed content.
};

/// An error in a zip file, with its byte offset.
struct zip_flaw {
  std::uint64_t byte = 0;
  std::string text{};
};

/// Returns the entries in the order of their contents. Checks that entries lie in the file and do not overlap, that
/// names differ, and that sizes and checksums are correct. Compressed contents may have `inflated_bytes_max` bytes in
/// total; they are decompressed in pieces and not stored.
[[nodiscard]] tl::expected<std::vector<zip_entry>, zip_flaw> zip_entries(std::span<const std::uint8_t> file,
                                                                         std::uint64_t inflated_bytes_max);

/// Passes the content of an entry from zip_entries() to `use`, in pieces.
void zip_pieces(std::span<const std::uint8_t> file, const zip_entry& entry,
                const std::function<void(std::span<const std::uint8_t>)>& use);

/// Returns the content of an entry from zip_entries().
[[nodiscard]] std::string zip_content(std::span<const std::uint8_t> file, const zip_entry& entry);

} // namespace mneme
