/// code_check: parses and checks the code of an archive before it is compiled or run.
#pragma once
#include <string>
#include <string_view>
#include <vector>
namespace mneme {

/// One source file of an archive.
struct code_file {
  std::string name{}; ///< "code/__torch__/net.py"
  std::string text{};
};

/// Returns the reasons to reject the code, each with its line; empty if it is accepted. LibTorch's parser builds syntax
/// trees and runs nothing. Every construct must be supported, and every called operator allowed (allowed_operators).
/// Defaults and class constants, which LibTorch evaluates while loading, must be literals. Methods that loading or
/// leaving a block would call implicitly are rejected.
[[nodiscard]] std::vector<std::string> code_errors(const std::vector<code_file>& files);

} // namespace mneme
