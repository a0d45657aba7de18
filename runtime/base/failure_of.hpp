/// failure_of: where exceptions of LibTorch, the system and the standard library become words for people.
#pragma once
#include <exception>
#include <new>
#include <string>
#include <system_error>
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

/// Why the system refuses `act`, a std::system_error in words; "": it does not. Other exceptions go on.
template <class Act>
[[nodiscard]] std::string system_refusal(Act&& act) {
  try {
    act();
    return {};
  } catch (const std::system_error&) {
    return failure_text();
  }
}

/// The sentence of an exception of LibTorch's, without its stack and the code around.
[[nodiscard]] std::string short_reason(const std::exception& thrown);

/// Why LibTorch refuses `act`, as short_reason() has it; "": it does not. A lack of memory is no refusal:
/// std::bad_alloc goes on.
template <class Act>
[[nodiscard]] std::string torch_refusal(Act&& act) {
  try {
    act();
    return {};
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& thrown) {
    return short_reason(thrown);
  }
}

} // namespace mneme
