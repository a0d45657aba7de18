/// operator_calls: calls of LibTorch operators, and the errors of their contracts.
#pragma once
#include "runtime/modules/contracts/operator_contracts.hpp"
#include <ATen/core/dispatch/Dispatcher.h>
#include <deque>
#include <stdexcept>
namespace mneme::test {

/// Arguments by name; missing ones have the schema's default, else None.
using named_arguments = std::vector<std::pair<std::string, c10::IValue>>;

inline const c10::FunctionSchema& schema_of_operator(const std::string& name, const std::string& overload) {
  static std::deque<c10::OperatorHandle> known; // schemas live as long as their handles
  const auto registered = c10::Dispatcher::singleton().findSchema({name, overload});
  if (!registered)
    throw std::runtime_error("LibTorch has no operator " + name + "." + overload);
  return known.emplace_back(*registered).schema();
}

inline std::vector<c10::IValue> arguments_of(const c10::FunctionSchema& schema, const named_arguments& given) {
  std::vector<c10::IValue> arguments;
  for (const auto& declared : schema.arguments()) {
    arguments.push_back(declared.default_value().value_or(c10::IValue{}));
    for (const auto& [name, value] : given)
      if (name == declared.name())
        arguments.back() = value;
  }
  for (const auto& [name, value] : given)
    if (!schema.argumentIndexWithName(name))
      throw std::runtime_error(schema.name() + " has no argument " + name);
  return arguments;
}

/// The contract's error for the call; "" if it is accepted. @param name "aten::conv2d" or, with an overload,
/// "aten::div.Tensor_mode"
inline std::string contract_error(const std::string& name, const named_arguments& given) {
  const auto dot = name.find('.');
  const auto& schema = schema_of_operator(name.substr(0, dot), dot == std::string::npos ? "" : name.substr(dot + 1));
  const auto* const contract = find_contract(schema);
  if (!contract)
    throw std::runtime_error(name + " has no contract");
  const auto arguments = arguments_of(schema, given);
  return contract->error({schema, arguments});
}

/// The call with one argument replaced or added.
inline named_arguments with_argument(named_arguments call, const std::string& name, const c10::IValue& value) {
  for (auto& [known, held] : call)
    if (known == name) {
      held = value;
      return call;
    }
  call.emplace_back(name, value);
  return call;
}

inline c10::IValue integer_list(std::vector<std::int64_t> numbers) { return c10::IValue(std::move(numbers)); }

} // namespace mneme::test
