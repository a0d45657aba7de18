/// operator_call: one operator call. Its arguments can be read by their schema names.
#pragma once
#include <ATen/core/Tensor.h>
#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>
#include <optional>
#include <string_view>
#include <vector>
namespace mneme {

/// A boxed call: arguments are in schema order, with defaults filled in.
struct operator_call {
  const c10::FunctionSchema& schema;
  c10::ArrayRef<c10::IValue> arguments;

  [[nodiscard]] const std::string& name() const { return schema.name(); } ///< "aten::conv2d", without overload.

  /// The argument's value. Returns nullptr if the schema has no such argument or its value is None.
  [[nodiscard]] const c10::IValue* find(std::string_view argument) const;

  /// The argument as a tensor. Returns an undefined tensor if it is missing, None or not a tensor.
  [[nodiscard]] at::Tensor tensor(std::string_view argument) const;
  /// The argument as a list of tensors. Returns an empty list if it is missing or not a list of tensors.
  [[nodiscard]] std::vector<at::Tensor> tensors(std::string_view argument) const;
  /// The argument as a list of integers; a single integer becomes a list of one. Returns an empty list if it is missing
  /// or has no integers.
  [[nodiscard]] std::vector<std::int64_t> integers(std::string_view argument) const;
  /// The argument as a list of float64 numbers; a single number becomes a list of one. Returns an empty list if it is
  /// missing or has no numbers.
  [[nodiscard]] std::vector<double> numbers(std::string_view argument) const;
  /// The argument as an integer. Returns nullopt if it is missing or not an integer.
  [[nodiscard]] std::optional<std::int64_t> integer(std::string_view argument) const;
  /// The argument as a boolean. Returns false if it is missing or not a boolean.
  [[nodiscard]] bool flag(std::string_view argument) const;
};

/// Formats an error for a call: "aten::conv2d: stride is [65537, 1]; expected at most 4096".
[[nodiscard]] std::string call_error(const operator_call& call, std::string_view finding);

/// Formats a tensor's shape: "[2, 3]".
[[nodiscard]] std::string shape_text(const at::Tensor& tensor);

} // namespace mneme
