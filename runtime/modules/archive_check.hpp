/// archive_check: a TorchScript archive, looked at from its first entry to its last before LibTorch reads it.
#pragma once
#include "runtime/formats/zip_archive.hpp"
#include <span>
#include <string>
#include <vector>
namespace mneme {

constexpr std::uint64_t code_bytes_max = std::uint64_t{64} << 20; ///< Code and notes of an archive, unpacked.

/// Why LibTorch may not read the archive, in words; none: it may. Its entries are those of torch.jit.save, beneath one
/// folder, and differ by more than capital letters, which LibTorch's reader does not tell apart; its code and its
/// pickles are what code_refusals() and pickle_refusal() take. Nothing of it has run then.
[[nodiscard]] std::vector<std::string> archive_refusals(std::span<const std::uint8_t> file,
                                                        const std::vector<zip_entry>& entries);

} // namespace mneme
