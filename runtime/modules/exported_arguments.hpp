/// exported_arguments: converts call arguments of an exported program to LibTorch values.
#pragma once
#include "runtime/modules/exported_program.hpp"
namespace mneme::exported {

enum class slot_kind : std::uint8_t { tensor, parameter, buffer, integer };

/// Maps names to the slots that earlier calls have written.
class slot_table {
public:
  /// Allocates a slot. Throws exported_error if the name is already defined.
  std::int32_t define(const std::string& name, slot_kind kind);
  /// The slot of an integer, or of a tensor of any kind. Throws exported_error if there is none.
  [[nodiscard]] std::int32_t tensor(const json& name) const { return find(string_of(name), false); }
  [[nodiscard]] std::int32_t integer(const json& name) const { return find(string_of(name), true); }
  [[nodiscard]] slot_kind kind(std::int32_t slot) const { return kinds_[static_cast<std::size_t>(slot)]; }
  [[nodiscard]] std::int32_t size() const noexcept { return static_cast<std::int32_t>(kinds_.size()); }

private:
  [[nodiscard]] std::int32_t find(const std::string& name, bool is_integer) const;

  std::map<std::string, std::int32_t, std::less<>> by_name_;
  std::vector<slot_kind> kinds_;
};

/// Wraps a number as a 0-dimensional tensor that, as in Python, does not take part in type promotion.
[[nodiscard]] at::Tensor number_tensor(const at::Scalar& number);

/// Appends an argument to the call: a constant value, or an operand that refers to slots. Integers may not exceed 2^28,
/// because kernels add and multiply sizes unchecked; only the end of a slice may be the largest integer.
/// Throws exported_error if the value does not have the argument's type.
/// @param value tagged union, such as {"as_int": 3}
void add_argument(const json& value, const c10::Argument& argument, const slot_table& slots, const at::Device& device,
                  exported_call& to);

} // namespace mneme::exported
