#include "runtime/base/check.hpp"
#include "runtime/base/checkpoint_loaded.hpp"
#include <atomic>
#include <cstdio>
#include <cstdlib>
namespace mneme {
namespace {

// True after a checkpoint was loaded. A failed check may then be the fault of the file instead of the program.
std::atomic<bool> resumed_from_file{false};

} // namespace

void mark_checkpoint_loaded() { resumed_from_file = true; }

void check_failed(const char* file, int line, const char* condition, const std::string& values) {
  std::fprintf(stderr, "%s:%d: check failed: %s (%s)\n", file, line, condition, values.c_str());
  if (resumed_from_file) {
    std::fputs("error: the run was resumed from a checkpoint with an invalid state: the file was changed, or mneme has "
               "a fault; remove the newest checkpoint and resume again, or run the scenario again\n",
               stderr);
    std::fflush(stderr);
    constexpr int failed_run = 1;
    std::_Exit(failed_run);
  }
  std::fflush(stderr);
  std::abort();
}

} // namespace mneme
