#include "tools/bench/loops/limits.hpp"
#include "tools/bench/bench_seconds.hpp"
#include <ATen/ops/add.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <algorithm>
#include <functional>
namespace mneme::bench {
namespace {

/// Calls `call` for about `seconds`. Returns the shortest time of a call in seconds.
double fastest(double seconds, const std::function<void()>& call) {
  call(); // warm up pages, caches and threads
  double best = 1e300;
  for (double total = 0.0; total < seconds;) {
    const double began = cpu_seconds();
    call();
    const double took = cpu_seconds() - began;
    total += took;
    best = std::min(best, took);
  }
  return best;
}

double product_rate(std::int64_t n, double seconds) {
  const auto a = at::ones({n, n}), b = at::ones({n, n});
  auto c = at::ones({n, n});
  return 2.0 * static_cast<double>(n * n * n) / fastest(seconds, [&] { at::mm_out(c, a, b); });
}

double memory_rate(double seconds) {
  constexpr std::int64_t numbers = std::int64_t{64} << 20; // gives arrays of 256 MiB
  const auto b = at::ones({numbers}), c = at::ones({numbers});
  auto a = at::ones({numbers});
  return 3.0 * sizeof(float) * static_cast<double>(numbers) / fastest(seconds, [&] { at::add_out(a, b, c, 0.5); });
}

} // namespace

machine_limits measure_machine_limits(double seconds) {
  machine_limits found;
  for (const std::int64_t n : {512, 1024, 2048})
    found.flops_per_second = std::max(found.flops_per_second, product_rate(n, seconds));
  found.bytes_per_second = memory_rate(seconds);
  return found;
}

} // namespace mneme::bench
