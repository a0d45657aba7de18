/// file_ending: the ending of a file's name in lower case.
#pragma once
#include "runtime/base/lower_case.hpp"
#include <filesystem>
#include <string>
namespace mneme {

/// ".csv" of "x.CSV"; "" if the name has no ending.
[[nodiscard]] inline std::string file_ending(const std::filesystem::path& file) {
  return lower_case(file.extension().string());
}

} // namespace mneme
