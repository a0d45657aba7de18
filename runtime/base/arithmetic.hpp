/// arithmetic: whether this process uses portable arithmetic or the fastest kernels of its machine.
#pragma once
namespace mneme {

/// Environment variable that decides for a process and its children, and its value for portable arithmetic.
inline constexpr const char *arithmetic_variable = "MNEME_ARITHMETIC", *portable_word = "portable";

/// True for portable arithmetic: one order of operations, that of AVX2 with FMA, for everything that affects a result.
/// Reads the environment at the first call.
[[nodiscard]] bool is_portable();

// The door of the optional part runtime/portable (CMake switch MNEME_PORTABLE).

/// Message of builds without it.
inline constexpr const char* no_portable_arithmetic =
    "this build has no portable arithmetic; build with MNEME_PORTABLE=ON, or use worker.arithmetic = \"machine\"";
[[nodiscard]] bool has_portable_arithmetic() noexcept;
/// Installs portable operators for the whole process, if it uses portable arithmetic. Repeated calls have no effect.
/// Throws std::runtime_error in builds without them. @pre no operator is running
void use_arithmetic();
/// `const portable_arithmetic_registration line{&use_portable_operators};`
struct portable_arithmetic_registration {
  explicit portable_arithmetic_registration(void (*install)()) noexcept;
};

} // namespace mneme
