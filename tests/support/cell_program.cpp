// Runs of a test try their modules as the program does, in a process of their own: cell_main.cpp is its program.
#include "runtime/modules/module_cell.hpp"

namespace {

[[maybe_unused]] const bool has_program = (mneme::set_cell_program(MNEME_CELL), true);

} // namespace
