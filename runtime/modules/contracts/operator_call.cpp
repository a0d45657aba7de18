#include "runtime/modules/contracts/operator_call.hpp"
#include <fmt/format.h>
#include <fmt/ranges.h>
namespace mneme {

const c10::IValue* operator_call::find(std::string_view argument) const {
  const auto& declared = schema.arguments();
  for (std::size_t i = 0; i < declared.size() && i < arguments.size(); ++i)
    if (declared[i].name() == argument)
      return arguments[i].isNone() ? nullptr : &arguments[i];
  return nullptr;
}

at::Tensor operator_call::tensor(std::string_view argument) const {
  const auto* const value = find(argument);
  return value && value->isTensor() ? value->toTensor() : at::Tensor{};
}

std::vector<at::Tensor> operator_call::tensors(std::string_view argument) const {
  const auto* const value = find(argument);
  return value && value->isTensorList() ? value->toTensorVector() : std::vector<at::Tensor>{};
}

std::vector<std::int64_t> operator_call::integers(std::string_view argument) const {
  const auto* const value = find(argument);
  if (value && value->isInt())
    return {value->toInt()};
  return value && value->isIntList() ? value->toIntVector() : std::vector<std::int64_t>{};
}

std::vector<double> operator_call::numbers(std::string_view argument) const {
  const auto* const value = find(argument);
  if (value && value->isDouble())
    return {value->toDouble()};
  if (value && value->isDoubleList())
    return value->toDoubleVector();
  const auto whole = integers(argument);
  return {whole.begin(), whole.end()};
}

std::optional<std::int64_t> operator_call::integer(std::string_view argument) const {
  const auto* const value = find(argument);
  return value && value->isInt() ? std::optional(value->toInt()) : std::nullopt;
}

bool operator_call::flag(std::string_view argument) const {
  const auto* const value = find(argument);
  return value && value->isBool() && value->toBool();
}

std::string call_error(const operator_call& call, std::string_view finding) {
  return fmt::format("{}: {}", call.name(), finding);
}

std::string shape_text(const at::Tensor& tensor) {
  return tensor.defined() ? fmt::format("[{}]", fmt::join(tensor.sizes(), ", ")) : "None";
}

} // namespace mneme
