/// checked_output: detects lost output of a command.
#pragma once
namespace mneme {

/// Flushes stdout. Returns `code`, or exit_failed if output was lost for another reason than a closed reader.
[[nodiscard]] int with_output_checked(int code);

} // namespace mneme
