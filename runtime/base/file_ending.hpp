/// file_ending: the extension of a file name, in lower case.
#pragma once
#include "runtime/base/lower_case.hpp"
#include <filesystem>
#include <string>
namespace mneme {

/// Returns ".csv" for "x.CSV", and "" for a name without extension.
[[nodiscard]] inline std::string file_ending(const std::filesystem::path& file) {
  return lower_case(file.extension().string());
}

} // namespace mneme
