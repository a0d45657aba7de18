/// exported_arguments: arguments of a call in an exported program, as values of LibTorch.
#pragma once
#include "runtime/modules/exported_program.hpp"
namespace mneme::exported {

enum class slot_kind : std::uint8_t { tensor, parameter, buffer, integer };

/// The slots that calls have written so far, by name.
class slot_table {
public:
  /// Throws if the name is taken.
  std::int32_t define(const std::string& name, slot_kind kind);
  /// The slot that holds a tensor of any kind, or an integer. Throws if there is none.
  [[nodiscard]] std::int32_t tensor(const json& name) const { return find(string_of(name), false); }
  [[nodiscard]] std::int32_t integer(const json& name) const { return find(string_of(name), true); }
  [[nodiscard]] slot_kind kind(std::int32_t slot) const { return kinds_[static_cast<std::size_t>(slot)]; }
  [[nodiscard]] std::int32_t size() const noexcept { return static_cast<std::int32_t>(kinds_.size()); }

private:
  [[nodiscard]] std::int32_t find(const std::string& name, bool is_integer) const;

  std::map<std::string, std::int32_t, std::less<>> by_name_;
  std::vector<slot_kind> kinds_;
};

/// A number where an operator takes a tensor: it does not change the type of the result, as in Python.
[[nodiscard]] at::Tensor number_tensor(const at::Scalar& number);

/// Appends an argument to the call: a value, or an operand that names slots. Integers are at most 2^28, since kernels
/// add and multiply sizes without checks; the end of a slice may be the largest integer. Throws exported_error if the
/// value is not of the argument's type.
/// @param value a tagged union: {"as_int": 3}
void add_argument(const json& value, const c10::Argument& argument, const slot_table& slots, const at::Device& device,
                  exported_call& to);

} // namespace mneme::exported
