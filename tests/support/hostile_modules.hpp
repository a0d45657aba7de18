/// hostile_modules: modules that attempt more than computing, built entry by entry.
#pragma once
#include "tests/support/archives.hpp"
#include <filesystem>
#include <fmt/format.h>
#include <string>
#include <vector>
namespace mneme::test {

using namespace std::string_literals;

struct hostile_module {
  std::string title{};
  archive_entries entries{};
  bool writes = false;     ///< true: if not stopped, the module creates a file in the folder.
  bool only_checks = true; ///< true: static checks refuse it; false: only the sandbox stops it.
};

/// Code of a module: lines of forward(), lines of the class, and other definitions.
struct hostile_code {
  std::string lines{}, members{}, beside{};
};

/// Pickle instructions of a string.
inline std::string pickled_text(const std::string& text) { return "X" + little_endian(text.size(), 4) + text; }

/// Pickle of the module, with members in addition to `training`.
inline std::string pickled_module(const std::string& more = "") {
  return "\x80\x02" + "c__torch__\nNet\n)\x81}("s + pickled_text("training") + "\x89" + more + "ub.";
}

inline archive_entries entries_with(const std::string& code, const std::string& pickle = pickled_module()) {
  return {{"net/data.pkl", pickle},
          {"net/code/__torch__.py", code},
          {"net/constants.pkl", "\x80\x02)."},
          {"net/version", "3\n"}};
}

inline std::string code_with(const hostile_code& parts) {
  return "class Net(Module):\n  __parameters__ = []\n  __buffers__ = []\n  training : bool\n" + parts.members +
         "  def forward(self: __torch__.Net,\n    x: Tensor) -> Tensor:\n" + parts.lines +
         "    return torch.flatten(x, 1)\n" + parts.beside;
}

} // namespace mneme::test
