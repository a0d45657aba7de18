/// limits: peak rates of one core of this machine with LibTorch.
#pragma once
namespace mneme::bench {

struct machine_limits {
  double flops_per_second = 0.0; ///< Rate for products of two square float32 matrices; the best of three sizes.
  double bytes_per_second = 0.0; ///< Rate for a = b + s * c over arrays larger than caches; counts three accesses per
                                 ///< element.
};
/// Measures in CPU time of the calling thread. Takes the best of several tries, because the limits are peak rates.
/// @param seconds approximate time per size
[[nodiscard]] machine_limits measure_machine_limits(double seconds);

} // namespace mneme::bench
