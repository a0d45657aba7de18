/// cell_program: how a test's process begins the cells that try its modules.
#pragma once
#include "runtime/modules/module_cell.hpp"
#include <filesystem>
namespace mneme::test {

/// While it lives, cells begin in this way; then as ever in tests, by a program of their own.
class cells_that_begin {
public:
  explicit cells_that_begin(cell_begin begin);
  cells_that_begin(cell_begin begin, const std::filesystem::path& program);
  cells_that_begin(const cells_that_begin&) = delete;
  cells_that_begin& operator=(const cells_that_begin&) = delete;
  ~cells_that_begin();
};

} // namespace mneme::test
