#include "runtime/base/intra_op_threads.hpp"
#include <ATen/Parallel.h>
#include <algorithm>

/// Returns MKL's number of threads for the calling thread. Null if LibTorch was built without MKL.
extern "C" int mkl_get_max_threads() __attribute__((weak));

namespace mneme {

void disable_intra_op_threads() {
  static thread_local bool is_set = false;
  if (is_set)
    return;
  at::get_num_threads(); // else LibTorch's first query on this thread would reset the number to its default
  at::set_num_threads(1);
  is_set = true;
}

void compute_on_one_thread_after_fork() {
  disable_intra_op_threads();
  at::set_num_threads(1); // this recreates LibTorch's thread pool, which is not thread-safe
}

int intra_op_threads() {
  const int of_mkl = mkl_get_max_threads ? mkl_get_max_threads() : 1;
  return std::max(at::get_num_threads(), of_mkl);
}

} // namespace mneme
