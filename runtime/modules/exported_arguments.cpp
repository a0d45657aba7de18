#include "runtime/modules/exported_arguments.hpp"
#include <ATen/ops/scalar_tensor.h>
#include <algorithm>
#include <fmt/format.h>
#include <limits>
namespace mneme::exported {
namespace {

using c10::IValue;
using c10::TypeKind;
using form = exported_operand::form;
using item = exported_operand::item;

/// Parses one argument of a call.
class argument_reader {
public:
  argument_reader(const json& value, const c10::Argument& argument, const slot_table& slots, const at::Device& device,
                  exported_call& to)
      : tag_(variant_of(value).first), value_(variant_of(value).second), argument_(argument), slots_(slots),
        device_(device), call_(to) {
    auto type = argument.real_type();
    is_optional_ = type->kind() == TypeKind::OptionalType;
    if (is_optional_)
      type = type->castRaw<c10::OptionalType>()->getElementType();
    kind_ = type->kind();
    if (kind_ == TypeKind::ListType)
      item_kind_ = type->castRaw<c10::ListType>()->getElementType()->kind();
  }

  void read() {
    call_.arguments.emplace_back();
    if (tag_ == "as_none" && is_optional_)
      return;
    if (!read_slots() && !read_numbers() && !read_others())
      throw exported_error(
          fmt::format("argument '{}' is {}; expected {}", argument_.name(), tag_, argument_.real_type()->repr_str()));
  }

private:
  [[nodiscard]] bool is(std::initializer_list<TypeKind> kinds) const {
    return std::find(kinds.begin(), kinds.end(), kind_) != kinds.end();
  }
  [[nodiscard]] bool is_list_of(std::initializer_list<TypeKind> kinds) const {
    return kind_ == TypeKind::ListType && std::find(kinds.begin(), kinds.end(), item_kind_) != kinds.end();
  }

  void set(IValue value) { call_.arguments.back() = std::move(value); }

  void add_operand(form kind, std::vector<item> items) {
    call_.operands.push_back({.place = call_.arguments.size() - 1, .kind = kind, .items = std::move(items)});
  }

  const json& items() const {
    if (!value_.is_array() || value_.size() > list_max)
      throw exported_error(fmt::format("argument '{}' is not a list of at most {} items", argument_.name(), list_max));
    return value_;
  }

  [[nodiscard]] std::int32_t tensor_slot(const json& reference) const {
    return slots_.tensor(field(reference, "name"));
  }

  /// Reads an argument made of slots: tensors, or integers computed by earlier calls.
  bool read_slots() {
    if (tag_ == "as_tensor" && is({TypeKind::TensorType}))
      add_operand(form::value, {{tensor_slot(value_)}});
    else if (tag_ == "as_sym_int" && value_.contains("as_name") && is({TypeKind::TensorType}))
      add_operand(form::number_tensor, {{slots_.integer(value_["as_name"])}});
    else if (tag_ == "as_sym_int" && value_.contains("as_name") &&
             is({TypeKind::IntType, TypeKind::SymIntType, TypeKind::NumberType}))
      add_operand(form::value, {{slots_.integer(value_["as_name"])}});
    else if (tag_ == "as_tensors" && is_list_of({TypeKind::TensorType, TypeKind::OptionalType}))
      add_tensors();
    else if (tag_ == "as_optional_tensors" && is_list_of({TypeKind::OptionalType}))
      add_optional_tensors();
    else if (tag_ == "as_sym_ints" && is_list_of({TypeKind::IntType, TypeKind::SymIntType}))
      add_integers();
    else
      return false;
    return true;
  }

  void add_tensors() {
    std::vector<item> tensors;
    for (const auto& reference : items())
      tensors.push_back({tensor_slot(reference)});
    add_operand(item_kind_ == TypeKind::TensorType ? form::tensors : form::optional_tensors, std::move(tensors));
  }

  void add_optional_tensors() {
    std::vector<item> tensors;
    for (const auto& each : items()) {
      const auto& [tag, reference] = variant_of(each);
      tensors.push_back(tag == "as_tensor" ? item{tensor_slot(reference)} : item{});
    }
    add_operand(form::optional_tensors, std::move(tensors));
  }

  void add_integers() {
    std::vector<item> integers;
    for (const auto& each : items()) {
      const auto& [tag, number] = variant_of(each);
      integers.push_back(tag == "as_name" ? item{slots_.integer(number)} : item{-1, size_of(number)});
    }
    add_operand(form::integers, std::move(integers));
  }

  /// Parses an integer that is a size, index or count.
  [[nodiscard]] std::int64_t size_of(const json& value) const {
    constexpr std::int64_t most = std::int64_t{1} << 28;
    const auto number = integer_of(value);
    const bool is_end = argument_.name() == "end" && number == std::numeric_limits<std::int64_t>::max();
    if ((number > most || number < -most) && !is_end)
      throw exported_error(fmt::format("argument '{}' is {}; expected at most {}", argument_.name(), number, most));
    return number;
  }

  bool read_numbers() {
    const auto& number = tag_ == "as_sym_int" && value_.contains("as_int") ? value_["as_int"] : value_;
    const bool is_integer = tag_ == "as_int" || &number != &value_;
    if (is_integer && is({TypeKind::TensorType}))
      set(number_tensor(integer_of(number)));
    else if (is_integer && is({TypeKind::IntType, TypeKind::SymIntType}))
      set(size_of(number));
    else if (is_integer && is({TypeKind::NumberType}))
      set(integer_of(number));
    else if (is_integer && is({TypeKind::FloatType}))
      set(static_cast<double>(integer_of(number)));
    else if (is_integer && is_list_of({TypeKind::IntType, TypeKind::SymIntType}))
      set(std::vector<std::int64_t>(static_cast<std::size_t>(argument_.N().value_or(1)), size_of(number)));
    else if (tag_ == "as_float" && is({TypeKind::FloatType, TypeKind::NumberType}))
      set(real_of(value_));
    else if (tag_ == "as_float" && is({TypeKind::TensorType}))
      set(number_tensor(real_of(value_)));
    else if (tag_ == "as_bool" && is({TypeKind::BoolType, TypeKind::NumberType}))
      set(flag_of(value_));
    else if (tag_ == "as_bool" && is({TypeKind::TensorType}))
      set(number_tensor(flag_of(value_)));
    else
      return read_number_lists();
    return true;
  }

  bool read_number_lists() {
    if (tag_ == "as_ints" && is_list_of({TypeKind::IntType, TypeKind::SymIntType})) {
      std::vector<std::int64_t> sizes;
      for (const auto& each : items())
        sizes.push_back(size_of(each));
      set(std::move(sizes));
    } else if (tag_ == "as_floats" && is_list_of({TypeKind::FloatType})) {
      std::vector<double> reals;
      for (const auto& each : items())
        reals.push_back(real_of(each));
      set(std::move(reals));
    } else if (tag_ == "as_bools" && is_list_of({TypeKind::BoolType})) {
      c10::List<bool> flags;
      for (const auto& each : items())
        flags.push_back(flag_of(each));
      set(std::move(flags));
    } else {
      return false;
    }
    return true;
  }

  bool read_others() {
    if (tag_ == "as_string" && is({TypeKind::StringType}))
      set(string_of(value_));
    else if (tag_ == "as_scalar_type" && is({TypeKind::ScalarTypeType, TypeKind::IntType}))
      set(static_cast<std::int64_t>(scalar_type()));
    else if (tag_ == "as_memory_format" && is({TypeKind::MemoryFormatType, TypeKind::IntType}))
      set(static_cast<std::int64_t>(memory_format()));
    else if (tag_ == "as_layout" && is({TypeKind::LayoutType, TypeKind::IntType}) &&
             integer_of(value_) == strided_layout)
      set(static_cast<std::int64_t>(at::kStrided));
    else if (tag_ == "as_device" && is({TypeKind::DeviceObjType}))
      set(device_); // the device of the run, not that of the export
    else
      return false;
    return true;
  }

  [[nodiscard]] at::ScalarType scalar_type() const {
    if (const auto type = scalar_type_of(integer_of(value_)))
      return *type;
    throw exported_error(fmt::format(
        "argument '{}' is a type that modules may not have; expected floats, integers or bool", argument_.name()));
  }

  [[nodiscard]] at::MemoryFormat memory_format() const {
    switch (integer_of(value_)) { // numbering of torch._export.serde.schema
    case 1:
      return at::MemoryFormat::Contiguous;
    case 2:
      return at::MemoryFormat::ChannelsLast;
    case 4:
      return at::MemoryFormat::Preserve;
    default:
      throw exported_error("a memory format is none of contiguous, channels_last and preserve");
    }
  }

  std::string tag_;
  const json& value_;
  const c10::Argument& argument_;
  const slot_table& slots_;
  const at::Device& device_;
  exported_call& call_;
  bool is_optional_ = false;
  TypeKind kind_{}, item_kind_{};
};

} // namespace

std::int32_t slot_table::define(const std::string& name, slot_kind kind) {
  const auto slot = size();
  if (!by_name_.emplace(name, slot).second)
    throw exported_error(fmt::format("'{}' is computed twice", name));
  kinds_.push_back(kind);
  return slot;
}

std::int32_t slot_table::find(const std::string& name, bool is_integer) const {
  const auto place = by_name_.find(name);
  if (place == by_name_.end())
    throw exported_error(fmt::format("'{}' is read before it is computed", name));
  if ((kind(place->second) == slot_kind::integer) != is_integer)
    throw exported_error(fmt::format("'{}' is {}", name,
                                     is_integer ? "a tensor; expected an integer" : "an integer; expected a tensor"));
  return place->second;
}

at::Tensor number_tensor(const at::Scalar& number) {
  const auto type = number.isFloatingPoint() ? at::kDouble : number.isBoolean() ? at::kBool : at::kLong;
  auto tensor = at::scalar_tensor(number, at::TensorOptions(type));
  tensor.unsafeGetTensorImpl()->set_wrapped_number(true);
  return tensor;
}

void add_argument(const json& value, const c10::Argument& argument, const slot_table& slots, const at::Device& device,
                  exported_call& to) {
  argument_reader(value, argument, slots, device, to).read();
}

} // namespace mneme::exported
