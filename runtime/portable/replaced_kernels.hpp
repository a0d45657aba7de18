/// replaced_kernels: how kernels take the place of LibTorch's for operators on a CPU.
#pragma once
#include <ATen/core/dispatch/Dispatcher.h>
#include <string>
namespace mneme::portable {

/// Keeps the kernel in its place until the process ends. @param overload "", "out", "Tensor"
void replace_kernel(const std::string& name, const std::string& overload, c10::KernelFunction kernel,
                    std::optional<c10::impl::CppSignature> arguments = std::nullopt);

/// The same for a function with the operator's own arguments.
template <class Function>
void replace(const std::string& name, const std::string& overload, Function* function) {
  replace_kernel(name, overload, c10::KernelFunction::makeFromUnboxedRuntimeFunction(function),
                 c10::impl::CppSignature::make<Function>());
}

/// Names of all operators whose kernels on a CPU have been replaced by ours.
[[nodiscard]] bool is_replaced_kernel(const c10::OperatorName& name);

} // namespace mneme::portable
