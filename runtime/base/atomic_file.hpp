/// Files that survive a crash or a full disk: whole or absent, or grown by whole lines.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string_view>
namespace mneme {

/// Owns a file descriptor. Every failure throws std::system_error naming the file.
class open_file {
public:
  open_file(std::filesystem::path path, int flags);
  open_file(open_file&& other) noexcept;
  open_file& operator=(open_file&& other) noexcept;
  ~open_file();

  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }
  [[nodiscard]] int descriptor() const noexcept { return descriptor_; }
  /// All of `bytes`, or an exception.
  void write(std::string_view bytes);
  /// Returns when the disk has it.
  void sync();
  void close();

private:
  std::filesystem::path path_;
  int descriptor_ = -1; ///< -1: closed
};

/// A file that appears under its name whole or not at all: written as `<name>.part` beside it and
/// renamed by commit(). Without a commit the part is removed. Who writes the same file meanwhile, in this process or
/// another, waits for it.
class atomic_file {
public:
  /// Throws where a link, a folder, a device or a pipe has the name, or that of the part: only ordinary files are
  /// replaced.
  explicit atomic_file(std::filesystem::path path);
  atomic_file(const atomic_file&) = delete;
  atomic_file& operator=(const atomic_file&) = delete;
  ~atomic_file();

  void write(std::string_view bytes) { part_.write(bytes); }
  /// The file is on the disk under its name. Called once, last.
  void commit();

private:
  std::filesystem::path path_;
  open_file part_;
  bool committed_ = false;
};

void write_atomically(const std::filesystem::path& path, std::string_view content);

/// A file that grows by whole lines. What is appended has left the process when append() returns;
/// of an append that fails nothing stays.
class line_file {
public:
  /// Opens, or creates; what is there is kept. Throws where something else than an ordinary file has the name.
  explicit line_file(std::filesystem::path path);
  /// Fails, too, if the file has been moved or removed since.
  void append(std::string_view lines);
  /// Its size in bytes, all of which are on the disk when it returns.
  [[nodiscard]] std::uint64_t settled();

private:
  open_file file_;
};

} // namespace mneme
