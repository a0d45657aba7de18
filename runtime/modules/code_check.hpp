/// code_check: the code of an archive, parsed and looked at before any of it is compiled or run.
#pragma once
#include <string>
#include <string_view>
#include <vector>
namespace mneme {

/// A file of code within an archive.
struct code_file {
  std::string name{}; ///< "code/__torch__/net.py"
  std::string text{};
};

/// Why a module may not have this code, each reason with its line; none: it may. LibTorch's parser makes trees of the
/// files, and runs nothing. Every construct and every operator that is called has to be one that is known to be
/// harmless (allowed_operators); defaults and constants of classes, which LibTorch evaluates while it loads a file, are
/// plain values; and no method is one that loading or a block's end would call by itself.
[[nodiscard]] std::vector<std::string> code_refusals(const std::vector<code_file>& files);

} // namespace mneme
