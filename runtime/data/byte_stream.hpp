/// byte_stream: what a file holds, plain or packed (.gz, .xz), read from front to back.
#pragma once
#include "runtime/data/unpack.hpp"
namespace mneme {

/// Diagnostics name the file and the byte; bytes of packed files count as unpacked.
class byte_stream {
public:
  /// The packing follows from the file's name; a content that is packed otherwise is a diagnostic.
  [[nodiscard]] static expected<byte_stream> open(const std::filesystem::path& path);

  /// Fills all of `out`; a content that ends before is a diagnostic.
  [[nodiscard]] expected<void> read(std::span<std::uint8_t> out);
  /// Fails if anything follows what has been read, or if a packed file's checksum is wrong.
  [[nodiscard]] expected<void> expect_end();

  /// See unpacker.
  [[nodiscard]] std::uint64_t content_bytes_max() const { return unpacker_->content_bytes_max(); }
  [[nodiscard]] expected<std::uint64_t> content_bytes() { return unpacker_->content_bytes(); }
  /// "file: byte n" or "file: unpacked byte n".
  [[nodiscard]] std::string place(std::uint64_t byte) const;
  /// How much has been read.
  [[nodiscard]] std::uint64_t position() const noexcept { return position_; }

private:
  std::filesystem::path path_{};
  bool packed_ = false;
  std::unique_ptr<unpacker> unpacker_{};
  std::uint64_t position_ = 0;
};

} // namespace mneme
