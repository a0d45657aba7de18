/// arithmetic: whether this process computes with portable arithmetic, or with whatever is fastest on its machine.
#pragma once
namespace mneme {

/// The variable that decides, for a process and all that it starts, and its value for portable arithmetic.
inline constexpr const char *arithmetic_variable = "MNEME_ARITHMETIC", *portable_word = "portable";

/// One order of operations, that of AVX2 with FMA, for all that reaches a result. What the environment said
/// when this was first asked.
[[nodiscard]] bool is_portable();

} // namespace mneme
