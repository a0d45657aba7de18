/// disk_file: a regular file, open for reading. Errors are diagnostics that name the file.
#pragma once
#include "runtime/base/diagnostic.hpp"
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <span>
#include <string>
namespace mneme {

class disk_file {
public:
  /// Opens a file. Fails for empty and unreadable files, folders, named pipes, sockets and devices.
  [[nodiscard]] static expected<disk_file> open(const std::filesystem::path& path);

  /// Reads the next bytes into `out`. Returns their number, which is smaller than out.size() only at the end of the
  /// file.
  [[nodiscard]] expected<std::size_t> read(std::span<std::uint8_t> out);
  /// Sets the byte offset of the next read.
  [[nodiscard]] expected<void> seek(std::uint64_t byte);

  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }
  [[nodiscard]] std::uint64_t size_bytes() const noexcept { return size_bytes_; }
  /// Byte offset of the next read.
  [[nodiscard]] std::uint64_t position() const noexcept { return position_; }
  /// Formats the location "file: byte n" for diagnostics.
  [[nodiscard]] std::string place(std::uint64_t byte) const;

private:
  struct closer {
    void operator()(std::FILE* file) const noexcept { std::fclose(file); }
  };
  std::filesystem::path path_{};
  std::unique_ptr<std::FILE, closer> file_{};
  std::uint64_t size_bytes_ = 0, position_ = 0;
};

/// Returns "a folder", "a named pipe", "a socket" or "a device"; "" for a regular or missing file. Follows links and
/// opens nothing.
[[nodiscard]] std::string special_kind(const std::filesystem::path& path);

/// The reason why `path` cannot be read, as the predicate of a sentence: "is a named pipe; expected an ordinary file".
/// Returns "" for a regular file of at most `bytes_max` bytes, which may be empty. Never blocks.
[[nodiscard]] std::string unreadable_text(const std::filesystem::path& path,
                                          std::uint64_t bytes_max = std::numeric_limits<std::uint64_t>::max());

/// Opens a regular file as a stream, for line readers. Errors are those of unreadable_text().
[[nodiscard]] tl::expected<std::ifstream, std::string> open_stream(const std::filesystem::path& path);

/// Reads a whole text file. Fails like disk_file::open(), and if the file has more than `bytes_max` bytes.
[[nodiscard]] expected<std::string> text_of_file(const std::filesystem::path& path, std::uint64_t bytes_max);

} // namespace mneme
