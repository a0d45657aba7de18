/// arithmetic: restarts the program for portable arithmetic, because libraries read the processor's features and the
/// environment only once.
#pragma once
#include "runtime/base/diagnostic.hpp"
#include "runtime/settings/scenario.hpp"
namespace mneme {

/// Must be called first. If the environment selects portable arithmetic, restarts the program with the variables for
/// the libraries, unless they are set. @param words command line, terminated by null; must outlive the process
void apply_arithmetic(char** words);

/// Restarts the program with the same command line if `asked` is portable arithmetic and this process does not use it
/// yet. Otherwise returns. Fails if the restart fails.
[[nodiscard]] expected<void> reexec_with(arithmetic_kind asked);

} // namespace mneme
