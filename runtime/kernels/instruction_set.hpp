/// instruction_set: vectors of floats, and one kernel compiled for each instruction set and chosen at run time.
#pragma once
#include <cstdint>
namespace mneme::kernels {

#define MNEME_INLINE inline __attribute__((always_inline))

/// `Lanes` floats side by side.
template <int Lanes>
struct floats {
  typedef float type __attribute__((vector_size(Lanes * sizeof(float))));
};
template <>
struct floats<1> {
  using type = float;
};
/// Bits of as many floats, to mask them.
template <int Lanes>
struct masks {
  typedef int type __attribute__((vector_size(Lanes * sizeof(int))));
};

/// A vector at any address. (A typedef with less alignment loses it inside templates; of a copy of its bytes g++ makes
/// two halves where vectors of an array are not all in registers, and waits for both before it reads the whole.)
template <class Vector>
struct __attribute__((packed, may_alias)) vector_anywhere {
  Vector value;
};

/// Reads and writes at any address.
template <class Vector>
MNEME_INLINE void load(Vector& to, const float* from) {
  to = reinterpret_cast<const vector_anywhere<Vector>*>(from)->value;
}
template <class Vector>
MNEME_INLINE void store(float* to, const Vector& from) {
  reinterpret_cast<vector_anywhere<Vector>*>(to)->value = from;
}

/// What a kernel's body may use: lanes of a vector, accumulators that stay in registers, and lanes in which the terms
/// of one sum are added side by side, on which its bits depend.
template <int Lanes, int Accumulators, int SumLanes = Lanes>
struct instruction_set {
  static constexpr int lanes = Lanes;
  static constexpr int accumulators = Accumulators;
  static constexpr int sum_lanes = SumLanes;
};
using wide_set = instruction_set<16, 16>;         ///< AVX-512: 32 registers of 16 floats
using half_sums_set = instruction_set<16, 16, 8>; ///< AVX-512, with the sums of AVX2
using half_set = instruction_set<8, 8>;           ///< AVX2 with FMA: 16 registers of 8
using plain_set = instruction_set<4, 8>;          ///< Any machine

/// The best set that this machine runs, or a lesser one that the environment asks for: MNEME_KERNELS=avx2 or plain.
enum class instruction_level : std::uint8_t { plain, half, wide };
/// The level whose bits kernels have. In portable arithmetic those of AVX2, on every machine.
[[nodiscard]] instruction_level machine_level();
/// The level of which kernels run a copy. In portable arithmetic, where AVX-512 is there, it is used as far as bits do
/// not depend on it.
[[nodiscard]] instruction_level copy_level();

/// MNEME_KERNEL(name, (parameters), (arguments)): defines `void best_name(parameters)`, which runs
/// name_body<Set>(arguments) for the best set of this machine. Not by target_clones: sanitizers and ifuncs clash.
/// For bodies of which every element of the result is computed by itself, its terms in their order: lanes do not
/// change its bits, so that portable arithmetic takes the widest copy, too.
/// MNEME_SUMMING_KERNEL: for bodies that add up the terms of one sum in several lanes, Set::sum_lanes.
#if defined(__x86_64__)
#define MNEME_WIDE __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")))
#define MNEME_LESSER_COPIES(name, parameters, arguments)                                                               \
  __attribute__((target("avx2,fma"))) static void name##_half parameters { name##_body<half_set> arguments; }          \
  static void name##_plain parameters { name##_body<plain_set> arguments; }
#define MNEME_BEST(name, parameters, arguments, wide)                                                                  \
  static void best_##name parameters {                                                                                 \
    static const auto chosen = chosen_for_machine(wide, name##_half, name##_plain);                                    \
    chosen arguments;                                                                                                  \
  }
#define MNEME_KERNEL(name, parameters, arguments)                                                                      \
  MNEME_WIDE static void name##_wide parameters { name##_body<wide_set> arguments; }                                   \
  MNEME_LESSER_COPIES(name, parameters, arguments)                                                                     \
  MNEME_BEST(name, parameters, arguments, name##_wide)
#define MNEME_SUMMING_KERNEL(name, parameters, arguments)                                                              \
  MNEME_WIDE static void name##_wide parameters { name##_body<wide_set> arguments; }                                   \
  MNEME_WIDE static void name##_half_sums parameters { name##_body<half_sums_set> arguments; }                         \
  MNEME_LESSER_COPIES(name, parameters, arguments)                                                                     \
  MNEME_BEST(name, parameters, arguments, machine_level() == copy_level() ? name##_wide : name##_half_sums)
#else
#define MNEME_KERNEL(name, parameters, arguments)                                                                      \
  static void best_##name parameters { name##_body<plain_set> arguments; }
#define MNEME_SUMMING_KERNEL(name, parameters, arguments) MNEME_KERNEL(name, parameters, arguments)
#endif

/// The copy of a kernel, out of three, that copy_level() names.
template <class Function>
Function* chosen_for_machine(Function* wide, Function* half, Function* plain) {
  switch (copy_level()) {
  case instruction_level::wide:
    return wide;
  case instruction_level::half:
    return half;
  case instruction_level::plain:
    break;
  }
  return plain;
}

} // namespace mneme::kernels
