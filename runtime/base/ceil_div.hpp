/// ceil_div: the quotient of two integers rounded up, without a sum that could overflow.
#pragma once
namespace mneme {

/// @pre part > 0
template <class Integer>
[[nodiscard]] constexpr Integer ceil_div(Integer whole, Integer part) noexcept {
  return whole / part + (whole % part > 0 ? 1 : 0);
}

} // namespace mneme
