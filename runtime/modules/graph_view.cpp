#include "runtime/modules/graph_view.hpp"
#include <fmt/format.h>
#include <fmt/ranges.h>
namespace mneme {

graph_view::graph_view(const exported_program& program, const std::vector<shape>& sizes)
    : program_(program), sizes_(sizes) {
  for (const auto& call : program_.calls)
    for (const auto slot : call.results)
      producers_[slot] = &call;
  for (const auto& held : program_.held)
    held_[held.slot] = held.tensor;
}

const exported_call* graph_view::producer(std::int32_t slot) const {
  const auto place = producers_.find(slot);
  return place == producers_.end() ? nullptr : place->second;
}

const module_graph::held_tensor* graph_view::held(std::int32_t slot) const {
  const auto place = held_.find(slot);
  return place == held_.end() ? nullptr : &program_.tensors[place->second];
}

graph_view::shape graph_view::slots(const exported_call& call, const char* argument) const {
  shape found;
  const auto place = call.op ? call.op->schema().argumentIndexWithName(argument) : std::nullopt;
  for (const auto& operand : call.operands)
    if (place && operand.place == static_cast<std::size_t>(*place))
      for (const auto& item : operand.items)
        found.push_back(item.slot);
  return found;
}

std::int32_t graph_view::slot(const exported_call& call, const char* argument) const {
  const auto found = slots(call, argument);
  return found.size() == 1 ? static_cast<std::int32_t>(found[0]) : -1;
}

std::int32_t graph_view::first_slot(const exported_call& call) const {
  for (const auto& operand : call.operands)
    for (const auto& item : operand.items)
      if (item.slot >= 0 && !sizes(item.slot).empty() && held(item.slot) == nullptr)
        return item.slot;
  return -1;
}

const module_graph::held_tensor* graph_view::parameter(const exported_call& call, const char* argument) const {
  const auto place = slot(call, argument);
  if (place < 0)
    return nullptr;
  const auto* const found = held(place);
  if (found == nullptr)
    throw no_layer(fmt::format("its {} is computed; expected a parameter", argument));
  return found;
}

const c10::IValue* graph_view::constant(const exported_call& call, const char* argument) const {
  const auto place = call.op ? call.op->schema().argumentIndexWithName(argument) : std::nullopt;
  if (!place || !slots(call, argument).empty())
    return nullptr;
  return &call.arguments[static_cast<std::size_t>(*place)];
}

double graph_view::number(const exported_call& call, const char* argument, double otherwise) const {
  const auto* const value = constant(call, argument);
  if (value && value->isNone())
    return otherwise;
  if (!value || !value->isScalar())
    throw no_layer(fmt::format("its {} is no constant number", argument));
  return value->toScalar().toDouble();
}

bool graph_view::flag(const exported_call& call, const char* argument) const {
  const auto* const value = constant(call, argument);
  return value && value->isBool() && value->toBool();
}

graph_view::shape graph_view::integers(const exported_call& call, const char* argument) const {
  const auto* const value = constant(call, argument);
  if (value && value->isNone())
    return {};
  if (value && value->isInt())
    return {value->toInt()};
  if (!value || !value->isIntList())
    throw no_layer(fmt::format("its {} are no constant numbers", argument));
  return value->toIntVector();
}

std::int64_t graph_view::square(const exported_call& call, const char* argument, std::int64_t otherwise) const {
  const auto items = integers(call, argument);
  for (const auto item : items)
    if (item != items[0])
      throw no_layer(fmt::format("its {} = [{}]; expected equal numbers", argument, fmt::join(items, ", ")));
  return items.empty() ? otherwise : items[0];
}

std::string plain_name(const exported_call& call) {
  return call.writes_argument() ? call.name.substr(0, call.name.size() - 1) : call.name;
}

std::string layer_with(const module_graph::held_tensor* parameter, const std::string& member) {
  if (parameter == nullptr)
    throw no_layer(fmt::format("it has no {}", member));
  const auto ending = "." + member;
  if (!parameter->parameter || !parameter->name.ends_with(ending) || parameter->name.size() == ending.size())
    throw no_layer(fmt::format("it reads '{}'; expected a parameter NAME{}", parameter->name, ending));
  return parameter->name.substr(0, parameter->name.size() - ending.size());
}

} // namespace mneme
