// bench_kernels: compares speed and bits of mneme's CPU kernels with those of LibTorch's operations, on one thread, for
// the shapes of mneme's nets.
//   build/release/bench_kernels [PART OF A NAME]
// Prints the table of runtime/kernels/README.md. Exit code 1: the results of a pair differ too much.
#include "tools/bench/kernels/kernel_comparison.hpp"
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <cstdio>
#include <stdexcept>
using namespace mneme::bench;

namespace {

const char* shown(bool yes) { return yes ? "yes" : "**no**"; }

void print_row(const kernel_comparison& pair, const figures& seen) {
  std::printf("| `%s` | %s | %ld | %.2f | %.2f | %.2f (%.2f-%.2f) | %s | %s / %s | %s / %s |\n", pair.kernel.c_str(),
              pair.shape.c_str(), static_cast<long>(pair.in[0].size(0)), seen.our_us, seen.their_us, seen.ratio,
              seen.ratio_min, seen.ratio_max, seen.equal_bits ? "equal" : "differ", shown(seen.ours_grouped),
              shown(seen.theirs_grouped), shown(seen.ours_placed), shown(seen.theirs_placed));
  std::fflush(stdout);
}

} // namespace

int main(int argc, char** argv) {
  at::set_num_threads(1);
  const at::NoGradGuard no_gradients;
  const std::string wanted = argc > 1 ? argv[1] : "";
  std::printf("| kernel | shape | K | ours, us | LibTorch's, us | ratio | bits | alone = in a group, ours / theirs | "
              "wherever operands begin, ours / theirs |\n|---|---|---|---|---|---|---|---|---|\n");
  try {
    for (const auto& contests :
         {product_contests, convolution_contests, image_contests, token_contests, training_contests})
      for (const auto& pair : contests())
        if (pair.kernel.find(wanted) != std::string::npos)
          print_row(pair, compare_kernels(pair));
  } catch (const std::exception& e) {
    std::fprintf(stderr, "bench_kernels: %s\n", e.what());
    return 1;
  }
}
