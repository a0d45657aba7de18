/// decoder: something that reads bytes which the program did not write, as libFuzzer plays it.
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
  const char* group = ""; ///< Decoders of a group are searched in turns, in one process.
  const char* name = "";  ///< tools/fuzz/decoders/seeds.py has honest inputs under the same name.
  /// Reads the input to its end or refuses it, by the exceptions or the values that its callers expect.
  std::function<void(bytes)> read{};
};

[[nodiscard]] std::vector<decoder> network_decoders();
[[nodiscard]] std::vector<decoder> state_decoders();
[[nodiscard]] std::vector<decoder> text_decoders();
[[nodiscard]] std::vector<decoder> data_decoders();
[[nodiscard]] std::vector<decoder> module_decoders();

/// A file of this content in the process's own folder below $TMPDIR, until the next of the same name is made.
[[nodiscard]] std::filesystem::path file_of(bytes content, const std::string& name);

} // namespace mneme::fuzz
