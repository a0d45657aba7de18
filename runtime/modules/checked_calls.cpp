#include "runtime/modules/checked_calls.hpp"
#include "runtime/modules/contracts/operator_contracts.hpp"
#include "runtime/modules/graph_check.hpp"
#include "runtime/modules/module_memory.hpp"
#include <algorithm>
#include <array>
#include <stdexcept>
#include <torch/csrc/jit/ir/constants.h>
#include <torch/csrc/jit/ir/ir.h>
#include <torch/csrc/jit/passes/constant_propagation.h>
#include <torch/csrc/jit/runtime/custom_operator.h>
#include <torch/csrc/jit/runtime/operator.h>
#include <utility>
#include <vector>
namespace mneme {
namespace {

namespace jit = torch::jit;

/// Operators registered by mneme: the check before a call, and a placeholder for an operator during constant folding.
const auto check_symbol = c10::Symbol::fromQualString("mneme::check_call");
const auto held_symbol = c10::Symbol::fromQualString("mneme::held_call");
const auto operator_name = c10::Symbol::attr("operator_name"), schema_address = c10::Symbol::attr("schema_address"),
           code_place = c10::Symbol::attr("code_place");

void check_call(const operator_contract& contract, const operator_call& call, const std::string& place) {
  if (auto error = contract.error(call); !error.empty())
    throw std::runtime_error(error + place);
  if (contract.bytes)
    module_memory::charge(contract.bytes(call));
}

/// The schema of the operator that a placeholder node represents. The reference stays valid: LibTorch's operator
/// registry lives as long as the process.
const c10::FunctionSchema& schema_of(const jit::Node& node) {
  return *reinterpret_cast<const c10::FunctionSchema*>(node.i(schema_address));
}

jit::Operation operation_of_check(const jit::Node* node) {
  const auto& schema = schema_of(*node);
  return [&schema, contract = find_contract(schema), count = node->inputs().size(),
          place = node->s(code_place)](jit::Stack& stack) {
    check_call(*contract, {schema, jit::last(stack, count)}, place);
    jit::drop(stack, count);
  };
}

jit::Operation operation_of_held(const jit::Node*) {
  return [](jit::Stack&) { throw std::logic_error("an operator that is held back is not evaluated"); };
}

const jit::RegisterOperators
    registered_checks({jit::Operator(check_symbol, operation_of_check, c10::AliasAnalysisKind::CONSERVATIVE),
                       jit::Operator(held_symbol, operation_of_held, c10::AliasAnalysisKind::PURE_FUNCTION)});

bool is_held(const jit::Node& node) { return node.kind() == held_symbol; }

/// Appends the matching nodes of a block and of its nested blocks.
template <class Wanted>
void add_nodes(jit::Block& block, const Wanted& is_wanted, std::vector<jit::Node*>& into) {
  for (auto* node : block.nodes()) {
    if (is_wanted(*node))
      into.push_back(node);
    for (auto* inner : node->blocks())
      add_nodes(*inner, is_wanted, into);
  }
}

template <class Wanted>
std::vector<jit::Node*> nodes_of(jit::Graph& graph, const Wanted& is_wanted) {
  std::vector<jit::Node*> nodes;
  add_nodes(*graph.block(), is_wanted, nodes);
  return nodes;
}

bool has_contract(const jit::Node& node) {
  const auto* const schema = node.maybeSchema();
  return schema && find_contract(*schema);
}

bool shares_memory(const c10::FunctionSchema& schema) {
  return std::any_of(schema.arguments().begin(), schema.arguments().end(),
                     [](const c10::Argument& argument) { return argument.alias_info() != nullptr; });
}

/// True for calls that LibTorch's constant folding would evaluate without a contract check. Excluded are views and the
/// operators that LibTorch never folds: in-place operators and those with a variable number of arguments.
bool has_to_be_held(const jit::Node& node) {
  return has_contract(node) && node.kind().is_aten() && !node.schema().is_vararg() && !shares_memory(node.schema());
}

jit::Node* replaced(jit::Node& node, c10::Symbol symbol) {
  auto* const other = node.replaceWithNewSymbol(symbol);
  node.destroy();
  return other;
}

void hold_back(jit::Node& node) {
  const std::string name = node.kind().toQualString();
  const auto address = reinterpret_cast<std::int64_t>(&node.schema());
  auto* const held = replaced(node, held_symbol);
  held->s_(operator_name, name);
  held->i_(schema_address, address);
}

void put_back(jit::Node& held) {
  const auto symbol = c10::Symbol::fromQualString(held.s(operator_name));
  held.removeAttribute(operator_name);
  held.removeAttribute(schema_address);
  replaced(held, symbol);
}

/// The arguments of a call if all of them are constants; empty otherwise.
std::vector<c10::IValue> constant_arguments(const jit::Node& node) {
  std::vector<c10::IValue> arguments;
  for (const auto* input : node.inputs())
    if (auto value = jit::toIValue(input))
      arguments.push_back(std::move(*value));
  return arguments.size() == node.inputs().size() ? arguments : std::vector<c10::IValue>{};
}

bool may_be_evaluated(const jit::Node& held) {
  const auto arguments = constant_arguments(held);
  const auto& schema = schema_of(held);
  return !arguments.empty() && find_contract(schema)->error({schema, arguments}).empty();
}

/// Operators on plain numbers. LibTorch's interpreter implements them directly, without the dispatcher.
constexpr std::array<std::pair<const char*, const char*>, 10> number_operators{{{"aten::floordiv", "int"},
                                                                                {"aten::floordiv", ""},
                                                                                {"aten::remainder", "int"},
                                                                                {"aten::remainder", ""},
                                                                                {"aten::divmod", "int"},
                                                                                {"aten::gcd", "int"},
                                                                                {"aten::__lshift__", "int"},
                                                                                {"aten::__rshift__", "int"},
                                                                                {"aten::add", "str"},
                                                                                {"aten::replace", ""}}};

/// Wraps an operator so that its contract is checked first. The lambda keeps the original alive, since graphs may
/// reference it.
jit::Operator checked_operator(const std::shared_ptr<jit::Operator>& original) {
  auto call = [original, contract = find_contract(original->schema()),
               run = original->getOperation()](jit::Stack& stack) mutable {
    const auto& schema = original->schema();
    check_call(*contract, {schema, jit::last(stack, schema.arguments().size())}, "");
    run(stack);
  };
  return {c10::toString(original->schema()), jit::Operation(std::move(call)), c10::AliasAnalysisKind::FROM_SCHEMA};
}

bool replace_number_operators() {
  for (const auto& [name, overload] : number_operators)
    if (const auto original = jit::findOperatorFor({name, overload})) {
      jit::deregisterOperator(original->schema());
      jit::registerOperator(checked_operator(original));
    }
  return true;
}

} // namespace

void check_number_operators() { [[maybe_unused]] static const bool replaced_once = replace_number_operators(); }

void fold_checked_constants(std::shared_ptr<jit::Graph>& graph) {
  for (auto* node : nodes_of(*graph, has_to_be_held))
    hold_back(*node);
  for (bool is_done = false; !is_done;) {
    jit::ConstantPropagation(graph);
    is_done = true;
    for (auto* held : nodes_of(*graph, is_held))
      if (may_be_evaluated(*held)) {
        put_back(*held);
        is_done = false;
      }
  }
  for (auto* held : nodes_of(*graph, is_held))
    put_back(*held);
}

void insert_call_checks(jit::Graph& graph) {
  for (auto* node : nodes_of(graph, has_contract)) {
    auto* const check = graph.create(check_symbol, node->inputs(), 0);
    check->i_(schema_address, reinterpret_cast<std::int64_t>(&node->schema()));
    check->s_(code_place, place_of(*node));
    check->copyMetadata(node);
    check->insertBefore(node);
  }
}

} // namespace mneme
