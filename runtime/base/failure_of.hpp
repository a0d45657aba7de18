/// failure_of: where exceptions of LibTorch, the system and the standard library become words for people.
#pragma once
#include <string>
namespace mneme {

/// The exception at hand in words, never "", without addresses. @pre called within a catch clause
[[nodiscard]] std::string failure_text();

/// What `act` throws, in words; "": nothing.
template <class Act>
[[nodiscard]] std::string failure_of(Act&& act) {
  try {
    act();
    return {};
  } catch (...) {
    return failure_text();
  }
}

} // namespace mneme
