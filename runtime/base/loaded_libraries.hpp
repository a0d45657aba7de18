/// loaded_libraries: the files of libraries whose versions can change what a run reads or computes.
#pragma once
#include "runtime/base/digest.hpp"
#include <filesystem>
#include <string>
#include <utility>
#include <vector>
namespace mneme {

/// A library as the system loaded it.
struct loaded_library {
  std::string name{};           ///< "zlib", "JPEG", "PNG", "XZ", "ICU" or "libm".
  std::filesystem::path file{}; ///< Links followed, so that its name ends with the version.
};

/// Those of the names above that this process has loaded; one that is linked statically is part of the program.
[[nodiscard]] std::vector<loaded_library> loaded_libraries();

/// ("zlib", "libz.so.1.2.13, 1f0c22ab"): the name of each library's file and the first digits of its digest, since
/// distributors mend libraries within a version; "unknown" for the digits of one that cannot be read.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> library_versions();

/// Hex text of a digest of the program's file and the libraries': what decodes data and computes, LibTorch left out,
/// whose version is told by itself. Throws where a file cannot be read.
[[nodiscard]] std::string build_digest_of(const std::filesystem::path& program,
                                          const std::vector<loaded_library>& libraries);

/// That of this process; of the extension of the Python package that of the program beside it, made with it. "unknown"
/// where a file cannot be read.
[[nodiscard]] const std::string& build_digest();

} // namespace mneme
