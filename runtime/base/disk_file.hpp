/// disk_file: an ordinary file, open for reading; what is wrong with it is a diagnostic that names it.
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
  /// Fails on a folder, a named pipe, a socket or a device, a file that may not be read, and an empty file.
  [[nodiscard]] static expected<disk_file> open(const std::filesystem::path& path);

  /// Fills `out` from the front; fewer bytes mean that the file has ended.
  [[nodiscard]] expected<std::size_t> read(std::span<std::uint8_t> out);
  /// The next read starts at this byte.
  [[nodiscard]] expected<void> seek(std::uint64_t byte);

  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }
  [[nodiscard]] std::uint64_t size_bytes() const noexcept { return size_bytes_; }
  /// Where the next read starts.
  [[nodiscard]] std::uint64_t position() const noexcept { return position_; }
  /// "file: byte n", as diagnostics name places.
  [[nodiscard]] std::string place(std::uint64_t byte) const;

private:
  struct closer {
    void operator()(std::FILE* file) const noexcept { std::fclose(file); }
  };
  std::filesystem::path path_{};
  std::unique_ptr<std::FILE, closer> file_{};
  std::uint64_t size_bytes_ = 0, position_ = 0;
};

/// "a folder", "a named pipe", "a socket" or "a device"; "" for an ordinary file, and where there is no file. Follows
/// links, opens nothing.
[[nodiscard]] std::string special_kind(const std::filesystem::path& path);

/// Why `path` cannot be read, as the predicate of a sentence: "is a named pipe; expected an ordinary file". Returns ""
/// for an ordinary file of at most `bytes_max`, which may be empty. Waits for no other process.
[[nodiscard]] std::string unreadable_text(const std::filesystem::path& path,
                                          std::uint64_t bytes_max = std::numeric_limits<std::uint64_t>::max());

/// A stream over an ordinary file, for readers of lines. The error is that of unreadable_text().
[[nodiscard]] tl::expected<std::ifstream, std::string> open_stream(const std::filesystem::path& path);

/// All of an ordinary file that holds text. Fails like disk_file::open(), and where it is larger than `bytes_max`.
[[nodiscard]] expected<std::string> text_of_file(const std::filesystem::path& path, std::uint64_t bytes_max);

} // namespace mneme
