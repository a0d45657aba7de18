/// native_package: what an AOTInductor package holds and says of itself, before any of its code is loaded.
#pragma once
#include "runtime/formats/zip_archive.hpp"
#include <array>
namespace mneme {

struct native_package {
  std::string library{};         ///< Bytes of the shared library.
  std::int64_t rows_of_call = 0; ///< B: the one number of rows that its code knows.
};

/// True of archives that hold compiled code.
[[nodiscard]] bool holds_native_code(const std::vector<zip_entry>& entries);

/// Reads the package from `file`. Fails in words, all differences at once: it holds one library for this processor,
/// with all that it needs, made by LibTorch's own version for one thread, and takes float32 rows [B, C, H, W].
/// @param input C, H, W of the run's rows
[[nodiscard]] tl::expected<native_package, std::vector<std::string>> read_package(std::span<const std::uint8_t> file,
                                                                                  const std::vector<zip_entry>& entries,
                                                                                  std::array<std::int64_t, 3> input);

} // namespace mneme
