/// disk_file: an ordinary file, open for reading; what is wrong with it is a diagnostic that names it.
#pragma once
#include "runtime/base/diagnostic.hpp"
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
namespace mneme {

class disk_file {
public:
  /// Fails on a folder or another thing that is no ordinary file, a file that may not be read, an empty file.
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

/// All of an ordinary file that holds text. Fails like disk_file::open(), and where it is larger than `bytes_max`.
[[nodiscard]] expected<std::string> text_of_file(const std::filesystem::path& path, std::uint64_t bytes_max);

} // namespace mneme
