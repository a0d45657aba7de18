/// temporary_file: a file in the system's temporary folder, removed by the destructor.
#pragma once
#include <filesystem>
#include <string>
#include <system_error>
#include <unistd.h>
namespace mneme {

class temporary_file {
public:
  /// Creates an empty file. Throws std::system_error on failure. @param ending extension, such as ".toml"
  explicit temporary_file(const std::string& ending)
      : path_((std::filesystem::temp_directory_path() / ("mneme-XXXXXX" + ending)).string()) {
    const int file = ::mkstemps(path_.data(), static_cast<int>(ending.size()));
    if (file < 0)
      throw std::system_error(errno, std::generic_category(), "cannot write '" + path_ + "'");
    ::close(file);
  }
  temporary_file(const temporary_file&) = delete;
  temporary_file& operator=(const temporary_file&) = delete;
  ~temporary_file() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

private:
  std::string path_;
};

} // namespace mneme
