#include "runtime/data/folder_content.hpp"
#include "runtime/base/file_ending.hpp"
#include "runtime/data/image_file.hpp"
#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <string_view>
namespace mneme {
namespace {

using std::filesystem::path;

constexpr std::array<std::string_view, 5> png_and_jpeg_endings{".png", ".jpg", ".jpeg", ".jpe", ".jfif"};
constexpr std::array<std::string_view, 13> other_image_endings{
    ".bmp", ".gif", ".tif", ".tiff", ".webp", ".ppm", ".pgm", ".pbm", ".heic", ".heif", ".avif", ".jp2", ".jxl"};
constexpr std::array<std::string_view, 4> metadata_files{"Thumbs.db", "thumbs.db", "desktop.ini", "Icon\r"};
constexpr std::array<std::string_view, 4> hidden_metadata_files{".DS_Store", ".gitkeep", ".gitignore", ".directory"};
constexpr std::array<std::string_view, 5> metadata_folders{"__MACOSX", "@eaDir", "$RECYCLE.BIN", "lost+found",
                                                           "System Volume Information"};

template <std::size_t N>
bool is_one_of(const std::string& word, const std::array<std::string_view, N>& words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

bool is_hidden(const path& entry) { return folder_name(entry).starts_with('.'); }

/// True for files such as "._x.png", in which macOS stores metadata of x.png on other file systems.
bool is_metadata_file(const path& file) {
  const auto name = file.filename().string();
  return name.starts_with("._") || is_one_of(name, metadata_files) || is_one_of(name, hidden_metadata_files);
}

void add_file(const path& file, folder_content& to) {
  if (is_metadata_file(file))
    return;
  const auto ending = file_ending(file);
  if (is_hidden(file))
    to.other_files.push_back(file);
  else if (is_one_of(ending, png_and_jpeg_endings))
    to.images.push_back(file);
  else if (is_one_of(ending, other_image_endings))
    (unsupported_format(file).empty() ? to.images : to.unsupported_images).push_back(file);
  else
    to.other_files.push_back(file);
}

} // namespace

std::string folder_name(const path& folder) { return folder.filename().string(); }

bool is_ignored_folder(const path& folder) {
  return is_hidden(folder) || is_one_of(folder_name(folder), metadata_folders);
}

expected<folder_content> list_folder(const path& folder) {
  folder_content content;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    std::error_code ignored;
    const auto& at = entry->path();
    if (!entry->is_directory(ignored))
      add_file(at, content);
    else
      (is_ignored_folder(at) ? content.ignored_folders : content.folders).push_back(at);
  }
  if (error)
    return failed(folder.string(), fmt::format("cannot be read: {}", error.message()));
  for (auto* paths :
       {&content.folders, &content.images, &content.unsupported_images, &content.other_files, &content.ignored_folders})
    std::sort(paths->begin(), paths->end());
  return content;
}

} // namespace mneme
