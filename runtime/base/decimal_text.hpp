/// decimal_text: numbers in decimal notation, compared by their exact value.
#pragma once
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
namespace mneme {

/// The number (-1)^negative * 0.DIGITS * 10^exponent.
struct decimal {
  bool negative = false;
  std::int64_t exponent = 0; ///< Zero has 0.
  std::string digits{};      ///< Without zeros at either end; "": zero.
  bool operator==(const decimal&) const = default;
};
/// By value.
[[nodiscard]] std::strong_ordering operator<=>(const decimal& a, const decimal& b);

/// Parses a sign, digits with a decimal point if wanted, and an exponent if wanted: "1", "+1.0", "-.5e3". nullopt if
/// the text is anything else. Zero has no sign.
[[nodiscard]] std::optional<decimal> parse_decimal(std::string_view text);

} // namespace mneme
