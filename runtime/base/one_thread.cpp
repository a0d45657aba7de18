#include "runtime/base/one_thread.hpp"
#include <ATen/Parallel.h>
#include <algorithm>

/// MKL's number for the calling thread. A LibTorch without MKL has no such function.
extern "C" int mkl_get_max_threads() __attribute__((weak));

namespace mneme {

void compute_on_one_thread() {
  static thread_local bool is_set = false;
  if (is_set)
    return;
  at::get_num_threads(); // LibTorch's first look at this thread would set the machine's number again
  at::set_num_threads(1);
  is_set = true;
}

void compute_on_one_thread_after_fork() {
  compute_on_one_thread();
  at::set_num_threads(1); // makes LibTorch's pool of threads anew, which no two threads may do at a time
}

int threads_of_an_operation() {
  const int of_mkl = mkl_get_max_threads ? mkl_get_max_threads() : 1;
  return std::max(at::get_num_threads(), of_mkl);
}

} // namespace mneme
