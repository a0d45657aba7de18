/// arithmetic: a process that computes with portable arithmetic is one from its start, because libraries look at the
/// processor and the environment once.
#pragma once
#include "runtime/base/diagnostic.hpp"
#include "runtime/settings/scenario.hpp"
namespace mneme {

/// Called first. Where the environment asks for portable arithmetic, the program starts again with the variables that
/// bind the libraries to it, unless they are set. @param words the command line, null at its end; it outlives all
void keep_arithmetic(char** words);

/// Starts the program again, with the same command line, where `asked` is portable arithmetic and this process has the
/// machine's. Returns where nothing is to be done; fails where it cannot be done.
[[nodiscard]] expected<void> restart_for(arithmetic_kind asked);

} // namespace mneme
