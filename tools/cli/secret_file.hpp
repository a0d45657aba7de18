/// secret_file: secrets that options and environment variables give to a process.
#pragma once
#include "runtime/base/diagnostic.hpp"
namespace mneme {

/// Sources of a secret. The file takes precedence.
struct secret_source {
  const char* option;      ///< "--secret"
  const std::string& file; ///< Value of the option; empty: not given.
  const char* variable;    ///< Environment variable.
  bool reads_variable = true;
};

/// Reads a secret of at least secret_letters_min characters; its file must be readable by its owner only. Returns "" if
/// neither source is given.
[[nodiscard]] expected<std::string> read_secret(const secret_source& source);

} // namespace mneme
