/// archive_check: checks all entries of a TorchScript archive before LibTorch reads it.
#pragma once
#include "runtime/formats/zip_archive.hpp"
#include <span>
#include <string>
#include <vector>
namespace mneme {

constexpr std::uint64_t code_bytes_max = std::uint64_t{64} << 20; ///< Uncompressed size of all code files.

/// Returns the reasons to reject the archive; empty if LibTorch may read it. All entries must have names that
/// torch.jit.save writes and one common top folder. No two names may differ by letter case only, since LibTorch's
/// reader ignores case. Code and pickles must pass code_errors() and pickle_error(). No code of the archive is
/// executed.
[[nodiscard]] std::vector<std::string> archive_errors(std::span<const std::uint8_t> file,
                                                      const std::vector<zip_entry>& entries);

} // namespace mneme
