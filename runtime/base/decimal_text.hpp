/// decimal_text: decimal numbers in text, compared by their exact values.
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
  std::int64_t exponent = 0; ///< The number zero has exponent 0.
  std::string digits{};      ///< Without leading and trailing zeros; "" for the number zero.
  bool operator==(const decimal&) const = default;
};
/// Compares the exact values.
[[nodiscard]] std::strong_ordering operator<=>(const decimal& a, const decimal& b);

/// Parses digits with an optional sign, decimal point and exponent: "1", "+1.0", "-.5e3". Returns nullopt for any other
/// text. Zero has no sign.
[[nodiscard]] std::optional<decimal> parse_decimal(std::string_view text);

} // namespace mneme
