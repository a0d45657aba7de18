/// portable_operators: LibTorch's operators for portable arithmetic. Operators of MKL, oneDNN and LAPACK are replaced
/// with mneme's own. Operators whose kernels are fixed by ATEN_CPU_CAPABILITY=avx2 are on an allowlist. All others fail
/// with an error that names the operator.
#pragma once
#include <string_view>
namespace mneme::portable {

/// Installs the operators for the whole process. Repeated calls have no effect. @pre no operator is running
void use_portable_operators();

/// True for the name of an operator ("aten::add") that gives the same bits on every machine.
[[nodiscard]] bool is_portable_operator(std::string_view name);

} // namespace mneme::portable
