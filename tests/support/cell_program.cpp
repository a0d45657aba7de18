// Makes tests probe modules in a separate process, as mneme does. The program of that process is cell_main.cpp.
#include "tests/support/cell_program.hpp"
namespace mneme::test {
namespace {

[[maybe_unused]] const bool has_program = (set_cell_program(MNEME_CELL), true);

} // namespace

cells_that_begin::cells_that_begin(cell_begin begin) : cells_that_begin(begin, MNEME_CELL) {}
cells_that_begin::cells_that_begin(cell_begin begin, const std::filesystem::path& program) {
  set_cell_program(program, begin);
}
cells_that_begin::~cells_that_begin() { set_cell_program(MNEME_CELL); }

} // namespace mneme::test
