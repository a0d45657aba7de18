/// failure_of: converts exceptions of LibTorch, the system and the standard library into messages for users.
#pragma once
#include <exception>
#include <new>
#include <string>
#include <system_error>
namespace mneme {

/// Message of the current exception, never empty, without addresses. @pre called in a catch clause
[[nodiscard]] std::string failure_text();

/// Runs `act`. Returns the message of its exception; empty if it does not throw.
template <class Act>
[[nodiscard]] std::string failure_of(Act&& act) {
  try {
    act();
    return {};
  } catch (...) {
    return failure_text();
  }
}

/// Runs `act`. Returns the message of its std::system_error; empty if it does not throw. Other exceptions propagate.
template <class Act>
[[nodiscard]] std::string system_refusal(Act&& act) {
  try {
    act();
    return {};
  } catch (const std::system_error&) {
    return failure_text();
  }
}

/// Message of a LibTorch exception, without stack trace and source code.
[[nodiscard]] std::string short_reason(const std::exception& thrown);

/// Runs `act`. Returns short_reason() of its LibTorch exception; empty if it does not throw. std::bad_alloc propagates.
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
