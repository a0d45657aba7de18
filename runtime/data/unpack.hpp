/// unpacker: turns the bytes of a plain, gzip or xz file into its content, in pieces.
#pragma once
#include "runtime/base/disk_file.hpp"
namespace mneme {

/// Memory is bounded by the packing, whatever a file claims.
class unpacker {
public:
  virtual ~unpacker() = default;
  /// Fills `out` from the front; fewer bytes mean that the content has ended, whole and verified.
  /// Fails on a truncated or corrupt file, and on bytes after the packed data.
  [[nodiscard]] virtual expected<std::size_t> fill(std::span<std::uint8_t> out) = 0;
  /// No file of this packing and size holds more: what headers claim is compared with it.
  [[nodiscard]] virtual std::uint64_t content_bytes_max() const = 0;
  /// How much the file holds: its size, what the xz index says, or (gzip) a count of everything.
  /// @pre nothing has been read
  [[nodiscard]] virtual expected<std::uint64_t> content_bytes() = 0;
};

[[nodiscard]] std::unique_ptr<unpacker> plain_unpacker(disk_file file);
[[nodiscard]] std::unique_ptr<unpacker> gzip_unpacker(disk_file file);
/// Blocks are unpacked side by side where the file has several; the content does not depend on it.
[[nodiscard]] std::unique_ptr<unpacker> xz_unpacker(disk_file file);

} // namespace mneme
