// Program of the sandbox for tests that do not link the command line. It only probes modules.
#include "runtime/base/arithmetic.hpp"
#include "runtime/models/user_module.hpp"
#include <span>

int main(int count, char** words) {
  mneme::use_arithmetic();
  return mneme::sandbox_main(std::span<const char* const>(words + 1, words + count));
}
