#include "runtime/kernels/instruction_set.hpp"
#include "runtime/base/arithmetic.hpp"
#include "runtime/base/check.hpp"
#include <algorithm>
#include <cstdlib>
#include <string_view>
namespace mneme::kernels {
namespace {

instruction_level best_level() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl"))
    return instruction_level::wide;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    return instruction_level::half;
#endif
  return instruction_level::plain;
}

/// No higher than what the environment allows.
instruction_level allowed_level() {
  if (is_portable())
    return instruction_level::half;
  const char* const asked = std::getenv("MNEME_KERNELS");
  const std::string_view name = asked ? asked : "";
  MNEME_CHECK(name.empty() || name == "avx2" || name == "plain", name);
  return name == "plain"  ? instruction_level::plain
         : name == "avx2" ? instruction_level::half
                          : instruction_level::wide;
}

} // namespace

instruction_level machine_level() {
  static const auto level = std::min(best_level(), allowed_level());
  return level;
}

} // namespace mneme::kernels
