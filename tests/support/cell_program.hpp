/// cell_program: how a test process starts the sandbox that probes modules.
#pragma once
#include "runtime/models/user_module.hpp"
#include <filesystem>
namespace mneme::test {

/// During its lifetime, sandboxes are started in the given way; afterwards by the program of the tests again.
class cells_that_begin {
public:
  explicit cells_that_begin(sandbox_start begin);
  cells_that_begin(sandbox_start begin, const std::filesystem::path& program);
  cells_that_begin(const cells_that_begin&) = delete;
  cells_that_begin& operator=(const cells_that_begin&) = delete;
  ~cells_that_begin();
};

} // namespace mneme::test
