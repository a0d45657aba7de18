/// cell_start: how the process of a cell begins.
#pragma once
#include "runtime/modules/module_cell.hpp"
#include <sys/types.h>
namespace mneme {

/// This process has one thread, so that a fork of it can go on: no lock is held by a thread that the fork lacks.
[[nodiscard]] bool has_one_thread();

/// The cell's half: it ends with its parent, and has no file above standard error.
void part_from_parent();

/// The id of a process that starts `program` anew as a cell, or -1 with errno: nothing of this process's memory is in
/// it. @param output becomes its file 1
[[nodiscard]] pid_t start_program_as_cell(const std::filesystem::path& program, std::span<const std::uint8_t> file,
                                          const cell_question& question, int output);

/// The id of a fork of this process that gives up all rights, answers into `output` and ends, or -1 with errno. It
/// begins with this process's memory, and costs no start of LibTorch. @pre has_one_thread()
[[nodiscard]] pid_t fork_as_cell(std::span<const std::uint8_t> file, const cell_question& question, int output);

} // namespace mneme
