/// instruction_set: vectors of floats, and kernels compiled for several instruction sets and selected at run time.
#pragma once
#include <cstdint>
namespace mneme::kernels {

#define MNEME_INLINE inline __attribute__((always_inline))

/// A vector of `Lanes` floats.
template <int Lanes>
struct floats {
  typedef float type __attribute__((vector_size(Lanes * sizeof(float))));
};
template <>
struct floats<1> {
  using type = float;
};
/// Integers of the same width, for use as masks.
template <int Lanes>
struct masks {
  typedef int type __attribute__((vector_size(Lanes * sizeof(int))));
};

/// A vector at an unaligned address. A typedef with smaller alignment would lose the alignment in templates. With
/// memcpy, g++ would split the vectors of an array that does not fit into registers, and reading them would stall.
template <class Vector>
struct __attribute__((packed, may_alias)) vector_anywhere {
  Vector value;
};

/// Unaligned read.
template <class Vector>
MNEME_INLINE void load(Vector& to, const float* from) {
  to = reinterpret_cast<const vector_anywhere<Vector>*>(from)->value;
}
template <class Vector>
MNEME_INLINE void store(float* to, const Vector& from) {
  reinterpret_cast<vector_anywhere<Vector>*>(to)->value = from;
}

/// Parameters of a kernel's body: lanes of a vector, accumulators that fit into registers, and lanes over which the
/// terms of one sum are distributed. SumLanes determines the bits of results.
template <int Lanes, int Accumulators, int SumLanes = Lanes>
struct instruction_set {
  static constexpr int lanes = Lanes;
  static constexpr int accumulators = Accumulators;
  static constexpr int sum_lanes = SumLanes;
};
using avx512_set = instruction_set<16, 16>;       ///< AVX-512: 32 registers of 16 floats
using half_sums_set = instruction_set<16, 16, 8>; ///< AVX-512 with the summation order of AVX2
using avx2_set = instruction_set<8, 8>;           ///< AVX2 with FMA: 16 registers of 8
using generic_set = instruction_set<4, 8>;        ///< Any machine

/// The best instruction set of this machine, or a lower one that the environment sets: MNEME_KERNELS=avx2 or plain.
enum class instruction_level : std::uint8_t { generic, avx2, avx512 };
/// The level that determines the bits of results. In portable arithmetic it is AVX2 on every machine.
[[nodiscard]] instruction_level result_isa();
/// The level of the compiled kernels in use. On a machine with AVX-512 it is AVX-512 even in portable arithmetic, for
/// kernels whose bits do not depend on the level.
[[nodiscard]] instruction_level dispatch_isa();

/// MNEME_KERNEL(name, (parameters), (arguments)) defines `void best_name(parameters)`, which runs
/// name_body<Set>(arguments) for the best set of this machine. It does not use target_clones, because sanitizers
/// conflict with ifuncs. A body must compute each element independently, with a fixed order of terms. Its bits then do
/// not depend on the number of lanes, so portable arithmetic uses the widest set, too. MNEME_SUMMING_KERNEL is for
/// bodies that distribute the terms of one sum over Set::sum_lanes lanes.
#if defined(__x86_64__)
#define MNEME_WIDE __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")))
#define MNEME_LESSER_COPIES(name, parameters, arguments)                                                               \
  __attribute__((target("avx2,fma"))) static void name##_half parameters { name##_body<avx2_set> arguments; }          \
  static void name##_plain parameters { name##_body<generic_set> arguments; }
#define MNEME_BEST(name, parameters, arguments, wide)                                                                  \
  static void best_##name parameters {                                                                                 \
    static const auto chosen = choose_for_machine(wide, name##_half, name##_plain);                                    \
    chosen arguments;                                                                                                  \
  }
#define MNEME_KERNEL(name, parameters, arguments)                                                                      \
  MNEME_WIDE static void name##_wide parameters { name##_body<avx512_set> arguments; }                                 \
  MNEME_LESSER_COPIES(name, parameters, arguments)                                                                     \
  MNEME_BEST(name, parameters, arguments, name##_wide)
#define MNEME_SUMMING_KERNEL(name, parameters, arguments)                                                              \
  MNEME_WIDE static void name##_wide parameters { name##_body<avx512_set> arguments; }                                 \
  MNEME_WIDE static void name##_half_sums parameters { name##_body<half_sums_set> arguments; }                         \
  MNEME_LESSER_COPIES(name, parameters, arguments)                                                                     \
  MNEME_BEST(name, parameters, arguments, result_isa() == dispatch_isa() ? name##_wide : name##_half_sums)
#else
#define MNEME_KERNEL(name, parameters, arguments)                                                                      \
  static void best_##name parameters { name##_body<generic_set> arguments; }
#define MNEME_SUMMING_KERNEL(name, parameters, arguments) MNEME_KERNEL(name, parameters, arguments)
#endif

/// Selects one of the three versions of a kernel by dispatch_isa().
template <class Function>
Function* choose_for_machine(Function* wide, Function* half, Function* plain) {
  switch (dispatch_isa()) {
  case instruction_level::avx512:
    return wide;
  case instruction_level::avx2:
    return half;
  case instruction_level::generic:
    break;
  }
  return plain;
}

} // namespace mneme::kernels
