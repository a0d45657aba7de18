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
    return instruction_level::avx512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    return instruction_level::avx2;
#endif
  return instruction_level::generic;
}

/// Highest level that the environment variable MNEME_KERNELS allows.
instruction_level allowed_level() {
  const char* const asked = std::getenv("MNEME_KERNELS");
  const std::string_view name = asked ? asked : "";
  MNEME_CHECK(name.empty() || name == "avx2" || name == "plain", name);
  if (name.empty())
    return instruction_level::avx512;
  // Portable arithmetic needs at least AVX2.
  return name == "plain" && !is_portable() ? instruction_level::generic : instruction_level::avx2;
}

} // namespace

instruction_level dispatch_isa() {
  static const auto level = std::min(best_level(), allowed_level());
  return level;
}

instruction_level result_isa() {
  return is_portable() ? std::min(dispatch_isa(), instruction_level::avx2) : dispatch_isa();
}

} // namespace mneme::kernels
