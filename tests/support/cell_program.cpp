// Makes tests probe modules in a separate process, as mneme does. The program of that process is cell_main.cpp.
#include "tests/support/cell_program.hpp"
namespace mneme::test {
namespace {

[[maybe_unused]] const bool has_program = (set_sandbox_program(MNEME_CELL), true);

} // namespace

cells_that_begin::cells_that_begin(sandbox_start begin) : cells_that_begin(begin, MNEME_CELL) {}
cells_that_begin::cells_that_begin(sandbox_start begin, const std::filesystem::path& program) {
  set_sandbox_program(program, begin);
}
cells_that_begin::~cells_that_begin() { set_sandbox_program(MNEME_CELL); }

} // namespace mneme::test
