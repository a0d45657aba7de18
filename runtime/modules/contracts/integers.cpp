#include "runtime/modules/contracts/call_errors.hpp"
#include <ATen/ATen.h>
#include <fmt/format.h>
#include <limits>
#include <optional>
namespace mneme::contracts {
namespace {

/// An integer operand of a division: either a tensor or a number.
struct integer_operand {
  at::Tensor tensor{};
  std::int64_t number = 0;

  [[nodiscard]] bool has(std::int64_t value) const {
    return tensor.defined() ? tensor.numel() > 0 && (tensor == value).any().item<bool>() : number == value;
  }
  /// The operand's type for type promotion.
  [[nodiscard]] at::ScalarType type() const { return tensor.defined() ? tensor.scalar_type() : at::kLong; }
};

std::optional<integer_operand> integers_of(const c10::IValue& value) {
  if (value.isInt())
    return integer_operand{.number = value.toInt()};
  if (value.isTensor() && value.toTensor().defined() && at::isIntegralType(value.toTensor().scalar_type(), false))
    return integer_operand{.tensor = value.toTensor()};
  return std::nullopt;
}

/// The smallest integer of the result's type. Dividing it by -1 overflows.
std::int64_t smallest_of(const integer_operand& dividend, const integer_operand& divisor) {
  auto type = c10::promoteTypes(dividend.type(), divisor.type());
  if (dividend.tensor.defined() != divisor.tensor.defined()) // a number takes the tensor's type
    type = dividend.tensor.defined() ? dividend.type() : divisor.type();
  return type == at::kInt ? std::numeric_limits<std::int32_t>::min() : std::numeric_limits<std::int64_t>::min();
}

} // namespace

/// Dividing the smallest integer by -1, or any integer by zero, kills the process with SIGFPE.
std::string division_error(const operator_call& call) {
  if (call.arguments.size() < 2)
    return "";
  const auto dividend = integers_of(call.arguments[0]), divisor = integers_of(call.arguments[1]);
  if (!dividend || !divisor)
    return "";
  const bool is_gcd = call.name() == "aten::gcd"; // gcd allows 0 as second number
  if (!is_gcd && divisor->has(0))
    return call_error(call, "an integer is divided by zero");
  const auto smallest = smallest_of(*dividend, *divisor);
  const auto overflows = [&](const integer_operand& by, const integer_operand& whole) {
    return by.has(-1) && whole.has(smallest);
  };
  if (overflows(*divisor, *dividend) || (is_gcd && overflows(*dividend, *divisor)))
    return call_error(call, fmt::format("{} is divided by -1, which no integer of its type holds", smallest));
  return "";
}

/// In C++ a shift by a negative amount, or by at least the integer's width, is undefined.
std::string shift_error(const operator_call& call) {
  constexpr std::int64_t bits = 64;
  if (call.arguments.size() < 2 || !call.arguments[1].isInt())
    return "";
  const auto by = call.arguments[1].toInt();
  return by >= 0 && by < bits ? ""
                              : call_error(call, fmt::format("a shift by {} bits; expected 0 to {}", by, bits - 1));
}

/// The kernel sums the counts in 64-bit integers and uses the sum as a write offset without a check.
std::string repeats_error(const operator_call& call) {
  auto total = 0.0;
  const auto rows = call.tensor("self");
  if (const auto counts = call.tensor("repeats"); counts.defined() && counts.numel() > 0) {
    if (!at::isIntegralType(counts.scalar_type(), false) || counts.lt(0).any().item<bool>())
      return call_error(call, "repeats has negative numbers or no integers");
    total = counts.to(at::kDouble).sum().item<double>();
    if (counts.numel() == 1 && rows.defined()) // a single count applies to every row
      total *= static_cast<double>(std::max<std::int64_t>(rows.numel(), 1));
  } else if (const auto count = call.integer("repeats"); count && rows.defined()) {
    total = static_cast<double>(*count) * static_cast<double>(rows.numel());
  }
  return total <= static_cast<double>(call_limits::numbers_max)
             ? ""
             : call_error(call, fmt::format("its result would have {:.0f} parts; expected at most {}", total,
                                            call_limits::numbers_max));
}

} // namespace mneme::contracts
