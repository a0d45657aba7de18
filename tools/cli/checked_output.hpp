/// checked_output: detects whether output of a command was lost.
#pragma once
namespace mneme {

/// Flushes stdout. Returns `code`, or exit_failed if output was lost although its reader had not closed it.
[[nodiscard]] int with_output_checked(int code);

} // namespace mneme
