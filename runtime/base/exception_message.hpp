/// exception_message: converts exceptions of LibTorch, the system and the standard library into messages for users.
#pragma once
#include <exception>
#include <new>
#include <string>
#include <system_error>
namespace mneme {

/// Message of the current exception, never empty, without addresses. @pre called in a catch clause
[[nodiscard]] std::string current_exception_message();

/// Runs `act`. Returns the message of its exception; empty if it does not throw.
template <class Act>
[[nodiscard]] std::string exception_message_of(Act&& act) {
  try {
    act();
    return {};
  } catch (...) {
    return current_exception_message();
  }
}

/// Runs `act`. Returns the message of its std::system_error; empty if it does not throw. Other exceptions propagate.
template <class Act>
[[nodiscard]] std::string system_error_of(Act&& act) {
  try {
    act();
    return {};
  } catch (const std::system_error&) {
    return current_exception_message();
  }
}

/// Message of a LibTorch exception, without stack trace and source code.
[[nodiscard]] std::string torch_error_message(const std::exception& thrown);

/// Runs `act`. Returns torch_error_message() of its LibTorch exception; empty if it does not throw. std::bad_alloc
/// propagates.
template <class Act>
[[nodiscard]] std::string torch_error_of(Act&& act) {
  try {
    act();
    return {};
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& thrown) {
    return torch_error_message(thrown);
  }
}

} // namespace mneme
