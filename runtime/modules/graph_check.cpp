#include "runtime/modules/graph_check.hpp"
#include "runtime/modules/allowed_operators.hpp"
#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <set>
#include <torch/csrc/jit/api/function_impl.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/ir/ir.h>
#include <unordered_set>
namespace mneme {
namespace {

namespace jit = torch::jit;

constexpr std::size_t nodes_max = 1'000'000;

/// Visits the members of a module recursively, each shared object once.
class member_walk {
public:
  void look_at(const c10::ivalue::Object& object) {
    if (!visited_.insert(&object).second)
      return;
    const auto type = object.type();
    if (object.slots().size() != type->numAttributes()) {
      refusals_.insert(fmt::format("an object of {} has {} members; expected {}", type->repr_str(),
                                   object.slots().size(), type->numAttributes()));
      return;
    }
    for (std::size_t i = 0; i < type->numAttributes(); ++i)
      if (!fits(object.getSlot(i), *type->getAttribute(i)))
        refusals_.insert(fmt::format("member {} of {} is not of the type that its class says, {}",
                                     type->getAttributeName(i), type->repr_str(), type->getAttribute(i)->repr_str()));
  }

  [[nodiscard]] std::vector<std::string> refusals() const { return {refusals_.begin(), refusals_.end()}; }

private:
  // The recursion is bounded, since a pickle limits how deeply values nest.
  bool fits(const c10::IValue& value, const c10::Type& type) {
    switch (type.kind()) {
    case c10::TypeKind::TensorType:
      return value.isTensor();
    case c10::TypeKind::IntType:
      return value.isInt();
    case c10::TypeKind::FloatType:
      return value.isDouble();
    case c10::TypeKind::BoolType:
      return value.isBool();
    case c10::TypeKind::StringType:
      return value.isString();
    case c10::TypeKind::NoneType:
      return value.isNone();
    case c10::TypeKind::DeviceObjType:
      return value.isDevice();
    case c10::TypeKind::OptionalType:
      return value.isNone() || fits(value, *type.containedType(0));
    case c10::TypeKind::ListType:
      return value.isList() && items_fit(value.toListRef(), type.containedType(0));
    case c10::TypeKind::TupleType:
      return value.isTuple() && parts_fit(value.toTupleRef().elements(), type);
    case c10::TypeKind::DictType:
      return value.isGenericDict() && entries_fit(value.toGenericDict(), type);
    case c10::TypeKind::ClassType:
      if (!value.isObject() || *value.toObjectRef().type() != type)
        return false;
      look_at(value.toObjectRef());
      return true;
    default:
      return false;
    }
  }

  bool items_fit(c10::ArrayRef<c10::IValue> items, const c10::TypePtr& type) {
    return std::all_of(items.begin(), items.end(), [&](const c10::IValue& item) { return fits(item, *type); });
  }

  template <class Parts>
  bool parts_fit(const Parts& parts, const c10::Type& type) {
    bool fit = parts.size() == type.containedTypeSize();
    for (std::size_t i = 0; i < parts.size() && fit; ++i)
      fit = fits(parts[i], *type.containedType(i));
    return fit;
  }

  bool entries_fit(const c10::Dict<c10::IValue, c10::IValue>& entries, const c10::Type& type) {
    return std::all_of(entries.begin(), entries.end(), [&](const auto& entry) {
      return fits(entry.key(), *type.containedType(0)) && fits(entry.value(), *type.containedType(1));
    });
  }

  std::unordered_set<const c10::ivalue::Object*> visited_;
  std::set<std::string> refusals_;
};

/// Counts the nodes of functions after inlining their calls. Counts above nodes_max become nodes_max + 1.
class size_count {
public:
  std::size_t of(jit::Function& function) {
    const auto [place, is_new] = sizes_.emplace(&function, nodes_max + 1); // a recursive function counts as too large
    if (!is_new)
      return place->second;
    auto* const with_graph = jit::tryToGraphFunction(function);
    const auto size = with_graph ? of(*with_graph->graph()->block()) : 1;
    return sizes_[&function] = size;
  }

private:
  std::size_t of(const jit::Block& block) {
    std::size_t size = 0;
    for (const auto* node : block.nodes()) {
      ++size;
      for (const auto* inner : node->blocks())
        size += of(*inner);
      if (auto* const called = function_of(*node))
        size += of(*called);
      size = std::min(size, nodes_max + 1);
    }
    return size;
  }

  static jit::Function* function_of(const jit::Node& node) {
    if (node.kind() == c10::prim::CallMethod)
      if (const auto type = node.input(0)->type()->cast<c10::ClassType>())
        return type->findMethod(node.s(c10::attr::name));
    if (node.kind() == c10::prim::CallFunction)
      if (const auto type = node.input(0)->type()->cast<c10::FunctionType>())
        return type->function();
    return nullptr;
  }

  std::map<const jit::Function*, std::size_t> sizes_;
};

/// True for types that the interpreter checks on every use of a value.
bool is_checked_when_used(const c10::Type& type) {
  switch (type.kind()) {
  case c10::TypeKind::TensorType:
  case c10::TypeKind::IntType:
  case c10::TypeKind::FloatType:
  case c10::TypeKind::BoolType:
  case c10::TypeKind::StringType:
  case c10::TypeKind::NoneType:
  case c10::TypeKind::DeviceObjType:
    return true;
  case c10::TypeKind::OptionalType:
  case c10::TypeKind::ListType:
    return is_checked_when_used(*type.containedType(0));
  default:
    return false;
  }
}

std::string refusal_before_evaluation(const jit::Node& node) {
  const std::string name = node.kind().toQualString();
  if (node.kind() == c10::prim::CallMethod || node.kind() == c10::prim::CallFunction)
    return fmt::format(
        "forward makes a call that is not known before it runs{}; interfaces and recursion are not taken",
        place_of(node));
  if (!is_allowed_operator(name))
    return fmt::format("forward calls {}{}, which is none of the operators that a module may use; leave it out", name,
                       place_of(node));
  if (node.kind() == c10::prim::unchecked_cast && !is_checked_when_used(*node.output()->type()))
    return fmt::format("forward takes a value for one of type {} without a check{}", node.output()->type()->repr_str(),
                       place_of(node));
  return "";
}

void add_refusals_before_evaluation(const jit::Block& block, std::set<std::string>& into) {
  for (const auto* node : block.nodes()) {
    if (auto reason = refusal_before_evaluation(*node); !reason.empty())
      into.insert(std::move(reason));
    for (const auto* inner : node->blocks())
      add_refusals_before_evaluation(*inner, into);
  }
}

} // namespace

std::vector<std::string> module_errors(const jit::Module& module) {
  member_walk members;
  members.look_at(*module._ivalue());
  auto refusals = members.refusals();
  if (size_count().of(module.get_method("forward").function()) > nodes_max)
    refusals.push_back(
        fmt::format("forward has more than {} operators with all that it calls, or calls itself", nodes_max));
  return refusals;
}

std::vector<std::string> operator_errors(const jit::Graph& graph) {
  std::set<std::string> refusals;
  add_refusals_before_evaluation(*graph.block(), refusals);
  return {refusals.begin(), refusals.end()};
}

std::string place_of(const jit::Node& node) {
  const auto range = node.sourceRange().file_line_col();
  if (!range)
    return "";
  const auto& [file, line, column] = *range;
  return fmt::format(" ({}:{})", file.substr(file.rfind('/') + 1), line);
}

} // namespace mneme
