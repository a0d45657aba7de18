/// atomic_file: files that survive a crash or a full disk. A file is complete or absent, or it grows by complete lines.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string_view>
namespace mneme {

/// Owns a file descriptor. Every failure throws std::system_error that names the file.
class open_file {
public:
  open_file(std::filesystem::path path, int flags);
  open_file(open_file&& other) noexcept;
  open_file& operator=(open_file&& other) noexcept;
  ~open_file();

  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }
  [[nodiscard]] int descriptor() const noexcept { return descriptor_; }
  /// Writes all of `bytes` or throws.
  void write(std::string_view bytes);
  /// Returns once all written bytes are on disk.
  void sync();
  void close();

private:
  std::filesystem::path path_;
  int descriptor_ = -1; ///< -1 if closed.
};

/// A file that appears under its name only when it is complete. It is written as `<name>.part` in the same folder and
/// renamed by commit(). Without a commit the part file is removed. Another writer of the same file, in this process or
/// another one, waits.
class atomic_file {
public:
  /// Throws if the file or its part file exists as a link, folder, device or pipe; only regular files are replaced.
  explicit atomic_file(std::filesystem::path path);
  atomic_file(const atomic_file&) = delete;
  atomic_file& operator=(const atomic_file&) = delete;
  ~atomic_file();

  void write(std::string_view bytes) { part_.write(bytes); }
  /// Moves the complete file to its name; it is then on disk. Must be the last call.
  void commit();

private:
  std::filesystem::path path_;
  open_file part_;
  bool committed_ = false;
};

/// Writes a whole file, using atomic_file. Throws std::system_error with the file name.
void write_atomically(const std::filesystem::path& path, std::string_view content);

/// A file that grows by complete lines. When append() returns, the operating system has the lines. A failed append
/// leaves no partial lines.
class line_file {
public:
  /// Opens or creates the file; existing content is kept. Throws if the path exists and is not a regular file.
  explicit line_file(std::filesystem::path path);
  /// Appends complete lines. Throws std::system_error on failure, also if the file was moved or removed.
  void append(std::string_view lines);
  /// Syncs the file to disk. Returns its size in bytes.
  [[nodiscard]] std::uint64_t sync_and_size();

private:
  open_file file_;
};

} // namespace mneme
