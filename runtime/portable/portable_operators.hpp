/// portable_operators: LibTorch's operators for a process with portable arithmetic. Those that MKL, oneDNN or LAPACK
/// would compute are ours; those whose own kernels are fixed once the processor's choice is (ATEN_CPU_CAPABILITY=avx2)
/// are named in a list; all others refuse to run, and say so by name.
#pragma once
#include <string_view>
namespace mneme::portable {

/// Puts them in place, for the whole process. Later calls do nothing. @pre no operator is running
void use_portable_operators();

/// True for the name of an operator ("aten::add") that computes the same on every machine.
[[nodiscard]] bool is_portable_operator(std::string_view name);

} // namespace mneme::portable
