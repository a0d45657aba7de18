#include "runtime/modules/contracts/call_errors.hpp"
#include <algorithm>
#include <fmt/format.h>
namespace mneme::contracts {
namespace {

/// The number of list or dictionary items, string characters or tensor elements in a value.
std::int64_t items_of(const c10::IValue& value) {
  if (value.isList())
    return static_cast<std::int64_t>(value.toListRef().size());
  if (value.isGenericDict())
    return static_cast<std::int64_t>(value.toGenericDict().size());
  if (value.isString())
    return static_cast<std::int64_t>(value.toStringRef().size());
  return value.isTensor() && value.toTensor().defined() ? value.toTensor().numel() : 0;
}

bool has_tensor_text(const operator_call& call) {
  return call.name() == "aten::format" || call.name() == "aten::percentFormat" || call.name() == "aten::str" ||
         call.name() == "prim::tolist";
}

bool adds_one_item(const operator_call& call) {
  return call.name() == "aten::append" || call.name() == "aten::insert" || call.name() == "aten::_set_item";
}

/// Upper bound of the characters of aten::join: each string counts together with one separator.
double joined_letters(const operator_call& call) {
  double letters = 0.0;
  const auto between = static_cast<double>(items_of(call.arguments[0]));
  if (call.arguments[1].isList())
    for (const c10::IValue& text : call.arguments[1].toListRef())
      letters += static_cast<double>(items_of(text)) + between;
  return letters;
}

/// Upper bound of the items or characters in a call's result, or in the list that it changes.
double result_items(const operator_call& call) {
  const auto& name = call.name();
  const auto& given = call.arguments;
  if (given.size() == 2 && (name == "aten::mul" || name == "aten::mul_")) {
    const auto count = given[0].isInt() ? given[0].toInt() : given[1].isInt() ? given[1].toInt() : 1;
    return static_cast<double>(std::max(items_of(given[0]), items_of(given[1]))) *
           static_cast<double>(std::max<std::int64_t>(count, 0));
  }
  if (name == "aten::join" && given.size() == 2)
    return joined_letters(call);
  if (name == "aten::replace" && given.size() >= 3) // each letter may become the new text
    return (1.0 + static_cast<double>(items_of(given[0]))) * (1.0 + static_cast<double>(items_of(given[2])));
  const bool is_one_more = adds_one_item(call);
  double items = 1.0;
  for (std::size_t i = 0; i < (is_one_more ? 1 : given.size()); ++i)
    if (!given[i].isTensor() || has_tensor_text(call))
      items += static_cast<double>(items_of(given[i]));
  return items;
}

} // namespace

/// Lists and strings are allocated outside of LibTorch's allocator, so the memory limit for tensors does not cover
/// them. aten::replace with an empty search string never returns.
std::string collection_error(const operator_call& call) {
  if (call.name() == "aten::replace" && call.arguments.size() >= 2 && items_of(call.arguments[1]) == 0)
    return call_error(call, "it replaces an empty text");
  const auto items = result_items(call);
  return items <= static_cast<double>(call_limits::items_max)
             ? ""
             : call_error(call, fmt::format("its result would have {:.0f} items or letters; expected at most {}", items,
                                            call_limits::items_max));
}

/// Upper bound of the bytes that one call allocates outside of LibTorch's allocator.
std::int64_t collection_bytes(const operator_call& call) {
  constexpr double item_bytes = 16.0, extra_bytes = 512.0;
  if (adds_one_item(call))
    return static_cast<std::int64_t>(extra_bytes);
  return static_cast<std::int64_t>(extra_bytes +
                                   item_bytes * std::min(result_items(call), double{call_limits::items_max}));
}

} // namespace mneme::contracts
