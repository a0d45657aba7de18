/// zip_archive: the entries of a zip file, checked to the last byte before anybody else reads them.
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
  std::uint64_t header = 0, begin = 0; ///< Bytes of the file at which the entry's own header and its content begin.
  std::uint64_t stored_bytes = 0;      ///< In the file.
  std::uint64_t bytes = 0;             ///< Unpacked.
  bool deflated = false;
  std::uint32_t checksum = 0; ///< CRC-32 of what is unpacked.
};

/// What is wrong with a zip file, and at which of its bytes.
struct zip_flaw {
  std::uint64_t byte = 0;
  std::string text{};
};

/// The entries of `file` in the order of their content. Every entry lies within the file, none overlaps another, names
/// differ, and each content has been unpacked and has the size and the checksum that the archive says. What is deflated
/// has at most `inflated_bytes_max` bytes altogether: it is unpacked piece by piece, and no memory is taken for it.
[[nodiscard]] tl::expected<std::vector<zip_entry>, zip_flaw> zip_entries(std::span<const std::uint8_t> file,
                                                                         std::uint64_t inflated_bytes_max);

/// Hands on the content of one of these entries, piece by piece.
void zip_pieces(std::span<const std::uint8_t> file, const zip_entry& entry,
                const std::function<void(std::span<const std::uint8_t>)>& use);

/// The content of one of these entries.
[[nodiscard]] std::string zip_content(std::span<const std::uint8_t> file, const zip_entry& entry);

} // namespace mneme
