/// byte_stream: sequential reader of a plain or compressed (.gz, .xz) file.
#pragma once
#include "runtime/data/unpack.hpp"
namespace mneme {

/// Diagnostics name the file and the byte offset; for compressed files, the offset in the decompressed content.
class byte_stream {
public:
  /// Opens a file. The file's extension determines the compression. Fails if the content is compressed in another way.
  [[nodiscard]] static expected<byte_stream> open(const std::filesystem::path& path);

  /// Reads exactly out.size() bytes. Fails if the content ends earlier.
  [[nodiscard]] expected<void> read(std::span<std::uint8_t> out);
  /// Fails if more content follows, or if the checksum of a compressed file is wrong.
  [[nodiscard]] expected<void> expect_end();

  /// See unpacker::content_bytes_max().
  [[nodiscard]] std::uint64_t content_bytes_max() const { return unpacker_->content_bytes_max(); }
  [[nodiscard]] expected<std::uint64_t> content_bytes() { return unpacker_->content_bytes(); }
  /// Formats a location: "file: byte n" or "file: unpacked byte n".
  [[nodiscard]] std::string place(std::uint64_t byte) const;
  /// Number of bytes read.
  [[nodiscard]] std::uint64_t position() const noexcept { return position_; }

private:
  std::filesystem::path path_{};
  bool packed_ = false;
  std::unique_ptr<unpacker> unpacker_{};
  std::uint64_t position_ = 0;
};

} // namespace mneme
