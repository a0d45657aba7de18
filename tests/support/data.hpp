/// data: finds real data for tests, in folders below the entries of $MNEME_DATA.
#pragma once
#include <catch2/catch_test_macros.hpp>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <sstream>
#include <string>
namespace mneme::test {

/// Path of the first `name` below an entry of $MNEME_DATA; "fashion-mnist" also in Debian's system folder.
inline std::optional<std::filesystem::path> data_folder(const std::string& name) {
  const char* roots = std::getenv("MNEME_DATA");
  std::istringstream list(roots ? roots : "");
  for (std::string root; std::getline(list, root, ':');)
    if (!root.empty() && std::filesystem::is_directory(std::filesystem::path(root) / name))
      return std::filesystem::path(root) / name;
  const std::filesystem::path system = "/usr/share/datasets/fashion-mnist";
  if (name == "fashion-mnist" && std::filesystem::is_directory(system))
    return system;
  return std::nullopt;
}

/// True if a missing data set fails a test instead of skipping it.
inline bool data_required() {
  const char* required = std::getenv("MNEME_DATA_REQUIRED");
  return required && std::string(required) == "1";
}

} // namespace mneme::test

/// Returns the folder of a data set. If it is missing, the test is skipped, or fails if data are required.
#define MNEME_NEEDS_DATA(folder, name)                                                                                 \
  const auto folder##_found = mneme::test::data_folder(name);                                                          \
  if (!folder##_found && mneme::test::data_required())                                                                 \
    FAIL("data set '" << (name) << "' not found below $MNEME_DATA");                                                   \
  if (!folder##_found)                                                                                                 \
    SKIP("data set '" << (name) << "' not found below $MNEME_DATA");                                                   \
  const std::filesystem::path folder = *folder##_found
