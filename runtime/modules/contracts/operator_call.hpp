/// operator_call: one call of an operator, with arguments that can be read by the names of its schema.
#pragma once
#include <ATen/core/Tensor.h>
#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>
#include <optional>
#include <string_view>
#include <vector>
namespace mneme {

/// The arguments are those of a boxed call: in the schema's order, defaults filled in.
struct operator_call {
  const c10::FunctionSchema& schema;
  c10::ArrayRef<c10::IValue> arguments;

  [[nodiscard]] const std::string& name() const { return schema.name(); } ///< "aten::conv2d", without overload.

  /// The value of this argument. nullptr if the schema has no such argument or the value is None.
  [[nodiscard]] const c10::IValue* find(std::string_view argument) const;

  /// The tensor of this argument. Undefined if it is missing, None or no tensor.
  [[nodiscard]] at::Tensor tensor(std::string_view argument) const;
  /// The tensors of a list argument. Empty if it is missing or no list of tensors.
  [[nodiscard]] std::vector<at::Tensor> tensors(std::string_view argument) const;
  /// The integers of a list argument; a single integer is a list of one. Empty if it is missing or holds no integers.
  [[nodiscard]] std::vector<std::int64_t> integers(std::string_view argument) const;
  /// The numbers of a list argument or of a single number, as float64. Empty as above.
  [[nodiscard]] std::vector<double> numbers(std::string_view argument) const;
  /// nullopt if the argument is missing or no integer.
  [[nodiscard]] std::optional<std::int64_t> integer(std::string_view argument) const;
  /// False if the argument is missing or no flag.
  [[nodiscard]] bool flag(std::string_view argument) const;
};

/// A sentence that begins with the operator's name: "aten::conv2d: stride is [65537, 1]; expected at most 4096".
[[nodiscard]] std::string call_error(const operator_call& call, std::string_view finding);

/// "[2, 3]"
[[nodiscard]] std::string shape_text(const at::Tensor& tensor);

} // namespace mneme
