/// limits: peak rates of one core of this machine with LibTorch.
#pragma once
namespace mneme::bench {

struct machine_limits {
  double flops_per_second = 0.0; ///< Product of two square float32 matrices; the best of three sizes.
  double bytes_per_second = 0.0; ///< Memory: a = b + s * c over arrays larger than caches, three accesses each.
};
/// Measured in CPU time of the calling thread; the best of several tries, since a limit is what can be reached.
/// @param seconds approximate time per size
[[nodiscard]] machine_limits measured_limits(double seconds);

} // namespace mneme::bench
