/// module_cell: a process of its own, without files, network and other rights, that loads and tries a module before
/// this process does.
#pragma once
#include "runtime/modules/module_trial.hpp"
#include <array>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>
namespace mneme {

/// The trial of a module's file that a cell runs.
struct cell_question {
  std::array<std::int64_t, 3> input{}; ///< C, H, W of a row; not read where the module says its own.
  row_form form = row_form::images;    ///< As in module_rows.
  std::int64_t tokens = 0;             ///< As in module_rows.
  bool own_rows = false;               ///< The module has a member `rows`.
  bool trained = false;                ///< A gradient has to reach a parameter.
  bool training = false;               ///< As in module_demands.
  bool checked = true;                 ///< False only in tests of the cell alone.
  std::int64_t seconds = 0;            ///< Processor time; 0: as many as suit the file's size.
  std::int64_t memory_bytes = 0;       ///< 0: as many as suit the file's size.
};

enum class cell_verdict : std::uint8_t {
  accepted,
  refused,
  unavailable ///< The machine gives no cell; nothing was tried.
};

struct cell_answer {
  cell_verdict verdict = cell_verdict::unavailable;
  std::vector<std::string> reasons{}; ///< In words; of bytes that a hostile module may have chosen.
  trial_result found{};               ///< What the trial of an accepted module has found, on the CPU.
};

/// Starts a cell, gives it the file, and waits for its end. @pre archive_refusals() has none for TorchScript,
/// unless a test says otherwise
[[nodiscard]] cell_answer ask_cell(std::span<const std::uint8_t> file, cell_question question);

/// Runs in the cell's process: gives up all rights, tries the file, answers on stdout. Returns an exit code.
/// @pre seconds and memory_bytes of `question` are set
[[nodiscard]] int answer_as_cell(std::span<const std::uint8_t> file, const cell_question& question);

/// As set_cell_program() and become_cell() of the door.
void set_sandbox_program(const std::filesystem::path& program, cell_begin begin);
[[nodiscard]] int run_as_sandbox(std::span<const char* const> words);

} // namespace mneme
