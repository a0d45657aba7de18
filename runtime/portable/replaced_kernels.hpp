/// replaced_kernels: replaces LibTorch's CPU kernels of operators.
#pragma once
#include <ATen/core/dispatch/Dispatcher.h>
#include <string>
namespace mneme::portable {

/// Installs a kernel until the process exits. @param overload name of the overload, such as "", "out" or "Tensor"
void replace_kernel(const std::string& name, const std::string& overload, c10::KernelFunction kernel,
                    std::optional<c10::impl::CppSignature> arguments = std::nullopt);

/// replace_kernel() for a function with the operator's arguments.
template <class Function>
void replace(const std::string& name, const std::string& overload, Function* function) {
  replace_kernel(name, overload, c10::KernelFunction::makeFromUnboxedRuntimeFunction(function),
                 c10::impl::CppSignature::make<Function>());
}

/// True if the operator's CPU kernel was replaced.
[[nodiscard]] bool is_replaced_kernel(const c10::OperatorName& name);

} // namespace mneme::portable
