/// arithmetic: whether this process uses portable arithmetic or the fastest kernels of its machine.
#pragma once
namespace mneme {

/// Environment variable that decides for a process and its children, and its value for portable arithmetic.
inline constexpr const char *arithmetic_variable = "MNEME_ARITHMETIC", *portable_word = "portable";

/// True for portable arithmetic: one order of operations, that of AVX2 with FMA, for everything that affects a result.
/// Reads the environment at the first call.
[[nodiscard]] bool is_portable();

} // namespace mneme
