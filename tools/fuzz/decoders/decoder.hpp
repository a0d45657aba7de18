/// decoder: reader of untrusted bytes, as a target of libFuzzer.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>
namespace mneme::fuzz {

using bytes = std::span<const std::uint8_t>;

struct decoder {
  const char* group = ""; ///< Decoders of a group are fuzzed in turn, in one process.
  const char* name = "";  ///< tools/fuzz/decoders/seeds.py has valid inputs under the same name.
  /// Reads the input to its end, or rejects it with exceptions or values that callers handle.
  std::function<void(bytes)> read{};
};

[[nodiscard]] std::vector<decoder> network_decoders();
[[nodiscard]] std::vector<decoder> state_decoders();
[[nodiscard]] std::vector<decoder> text_decoders();
[[nodiscard]] std::vector<decoder> data_decoders();
[[nodiscard]] std::vector<decoder> module_decoders();

/// Writes a file with this content into the process's folder below $TMPDIR. The file exists until the next call with
/// the same name.
[[nodiscard]] std::filesystem::path file_of(bytes content, const std::string& name);

} // namespace mneme::fuzz
