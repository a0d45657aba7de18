/// ceil_div: integer division that rounds up and cannot overflow.
#pragma once
namespace mneme {

/// Returns whole / part, rounded up. @pre part > 0
template <class Integer>
[[nodiscard]] constexpr Integer ceil_div(Integer whole, Integer part) noexcept {
  return whole / part + (whole % part > 0 ? 1 : 0);
}

} // namespace mneme
