/// loaded_libraries: library files whose versions can change what a run reads or computes.
#pragma once
#include "runtime/base/digest.hpp"
#include <filesystem>
#include <string>
#include <utility>
#include <vector>
namespace mneme {

/// A library loaded by this process.
struct loaded_library {
  std::string name{};           ///< "zlib", "JPEG", "PNG", "XZ", "ICU" or "libm".
  std::filesystem::path file{}; ///< With links resolved, so that its name ends with the version.
};

/// The relevant libraries that this process has loaded. Statically linked ones are part of the program.
[[nodiscard]] std::vector<loaded_library> loaded_libraries();

/// Pairs such as ("zlib", "libz.so.1.2.13, 1f0c22ab"): file name and first digits of its digest, because distributions
/// patch libraries within a version. "unknown" instead of the digits if the file cannot be read.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> library_versions();

/// Hex digest of the program's file and the libraries that decode data or compute, except LibTorch, whose version is
/// reported separately. Throws if a file cannot be read.
[[nodiscard]] std::string build_digest_of(const std::filesystem::path& program,
                                          const std::vector<loaded_library>& libraries);

/// Build digest of this process; in the Python package, that of the program of the same build. "unknown" if a file
/// cannot be read.
[[nodiscard]] const std::string& build_digest();

} // namespace mneme
