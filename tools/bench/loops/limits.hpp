/// limits: what one core of this machine can do at best, through LibTorch.
#pragma once
namespace mneme::bench {

struct machine_limits {
  double flops_per_second = 0.0; ///< Rate of a product of two square float32 matrices, the best of three sizes.
  double bytes_per_second = 0.0; ///< To and from memory: a = b + s * c over arrays no cache holds, three a number.
};
/// By CPU time of the calling thread; the best of several tries each, because a limit is what can be reached.
/// @param seconds for each of the sizes, about
[[nodiscard]] machine_limits measured_limits(double seconds);

} // namespace mneme::bench
