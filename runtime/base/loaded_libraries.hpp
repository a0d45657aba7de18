/// loaded_libraries: shared libraries that decode data or compute. Another version of such a library can change the
/// results of a run.
#pragma once
#include "runtime/base/digest.hpp"
#include <filesystem>
#include <string>
#include <utility>
#include <vector>
namespace mneme {

/// A shared library that this process has loaded.
struct loaded_library {
  std::string name{};           ///< "zlib", "JPEG", "PNG", "XZ", "ICU" or "libm".
  std::filesystem::path file{}; ///< Path with links resolved, so that the name contains the version.
};

/// The libraries of a fixed list that this process has loaded. Statically linked ones are part of the program file.
[[nodiscard]] std::vector<loaded_library> loaded_libraries();

/// Pairs such as ("zlib", "libz.so.1.2.13, 1f0c22ab"): file name and first digits of its digest, because distributions
/// patch libraries without changing the version. If the file cannot be read, the digits are "unknown".
[[nodiscard]] std::vector<std::pair<std::string, std::string>> library_versions();

/// Hexadecimal digest of the program file and the loaded libraries that decode data or compute. LibTorch is not
/// included; its version is reported separately. Throws if a file cannot be read.
[[nodiscard]] std::string build_digest_of(const std::filesystem::path& program,
                                          const std::vector<loaded_library>& libraries);

/// Build digest of this process. In the Python package, it is the digest of the program from the same build. Returns
/// "unknown" if a file cannot be read.
[[nodiscard]] const std::string& build_digest();

} // namespace mneme
