/// file_ending: the ending of a file's name, whatever its capital letters.
#pragma once
#include <algorithm>
#include <cctype>
#include <filesystem>
#include <string>
namespace mneme {

/// ".csv" of "x.CSV"; "" if the name has no ending.
[[nodiscard]] inline std::string file_ending(const std::filesystem::path& file) {
  auto ending = file.extension().string();
  std::transform(ending.begin(), ending.end(), ending.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  return ending;
}

} // namespace mneme
