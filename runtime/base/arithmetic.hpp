/// arithmetic: selects portable arithmetic or the machine's fastest kernels for this process.
#pragma once
namespace mneme {

/// Environment variable that selects the arithmetic of a process and its children, and the value of this variable that
/// selects portable arithmetic.
inline constexpr const char *arithmetic_variable = "MNEME_ARITHMETIC", *portable_word = "portable";

/// True for portable arithmetic. On every machine, all operations that affect a result then have the order that they
/// have with AVX2 and FMA. The first call reads the environment.
[[nodiscard]] bool is_portable();

// Entry point of the optional part runtime/portable (CMake switch MNEME_PORTABLE).

/// Error message of builds without portable arithmetic.
inline constexpr const char* no_portable_arithmetic =
    "this build has no portable arithmetic; build with MNEME_PORTABLE=ON, or use worker.arithmetic = \"machine\"";
/// True if this build contains portable arithmetic.
[[nodiscard]] bool has_portable_arithmetic() noexcept;
/// Installs portable operators for the whole process if is_portable(). Repeated calls have no effect. Throws
/// std::runtime_error in builds without them. @pre no operator is running
void use_arithmetic();
/// Registers the installer: `const portable_arithmetic_registration line{&use_portable_operators};`
struct portable_arithmetic_registration {
  explicit portable_arithmetic_registration(void (*install)()) noexcept;
};

} // namespace mneme
