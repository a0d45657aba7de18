/// module_sandbox: loads and probes a module in a sandbox process before this process loads it. The sandbox process has
/// no access to files, network or other processes (seccomp, rlimits).
#pragma once
#include "runtime/modules/module_probe.hpp"
#include <array>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>
namespace mneme {

/// Parameters of the probe that a sandbox process runs.
struct sandbox_request {
  std::array<std::int64_t, 3> input{}; ///< C, H, W of a row; unused if the module declares its own.
  row_form form = row_form::images;    ///< See module_rows.
  std::int64_t tokens = 0;             ///< See module_rows.
  bool own_rows = false;               ///< True: the module declares its rows in a buffer `rows`.
  bool trained = false;                ///< True: the parameters are trained, so a gradient must reach at least one of
                                       ///< them.
  bool training = false;               ///< See module_requirements.
  std::int64_t seconds = 0;            ///< Limit of processor time in seconds; 0: derived from the file size.
  std::int64_t memory_bytes = 0;       ///< Memory limit in bytes; 0: derived from the file size.
};

enum class sandbox_status : std::uint8_t {
  accepted,
  refused,
  not_supported ///< This machine supports no sandbox, so nothing was probed.
};

struct sandbox_reply {
  sandbox_status verdict = sandbox_status::not_supported;
  std::vector<std::string> reasons{}; ///< Sentences for the user. A malicious module may have chosen their text.
  probe_result found{};               ///< Result of the probe on the CPU, if accepted.
};

/// Runs the probe in a sandbox process and waits for its answer.
[[nodiscard]] sandbox_reply run_in_sandbox(std::span<const std::uint8_t> file, sandbox_request question);

/// Runs in the sandbox process: restricts the process, probes the file, and writes the answer to standard output.
/// Returns the exit code. @pre question.seconds and question.memory_bytes are set
[[nodiscard]] int serve_sandbox_request(std::span<const std::uint8_t> file, const sandbox_request& question);

/// Implement set_sandbox_program() and sandbox_main() (user_module.hpp).
void set_probe_program(const std::filesystem::path& program, sandbox_start begin);
[[nodiscard]] int run_probe_process(std::span<const char* const> words);

} // namespace mneme
