/// unpacker: decompresses a plain, gzip or xz file in pieces.
#pragma once
#include "runtime/base/disk_file.hpp"
namespace mneme {

/// The memory in use has a bound that depends on the format, not on the sizes that a file claims.
class unpacker {
public:
  virtual ~unpacker() = default;
  /// Decompresses the next bytes into `out`. Returns their number, which is smaller than out.size() only at the
  /// verified end. Fails on truncated or corrupt files, and on trailing bytes after the compressed data.
  [[nodiscard]] virtual expected<std::size_t> fill(std::span<std::uint8_t> out) = 0;
  /// Upper bound on the content's size for this format and file size, for checking headers.
  [[nodiscard]] virtual std::uint64_t content_bytes_max() const = 0;
  /// Exact size of the content in bytes: the file size, the size in the xz index, or for gzip the size after
  /// decompressing.
  /// @pre nothing has been read
  [[nodiscard]] virtual expected<std::uint64_t> content_bytes() = 0;
};

[[nodiscard]] std::unique_ptr<unpacker> plain_unpacker(disk_file file);
[[nodiscard]] std::unique_ptr<unpacker> gzip_unpacker(disk_file file);
/// Decompresses the blocks of an xz file in parallel if there are several.
[[nodiscard]] std::unique_ptr<unpacker> xz_unpacker(disk_file file);

} // namespace mneme
