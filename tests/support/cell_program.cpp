// Runs of a test try their modules as the program does: in a process of the program itself.
#include "runtime/modules/module_cell.hpp"

namespace {

[[maybe_unused]] const bool has_program = (mneme::set_cell_program(MNEME_PROGRAM), true);

} // namespace
