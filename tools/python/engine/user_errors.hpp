/// user_errors: converts exceptions of Python code to errors of the run, with the user's file and line.
#pragma once
#include "tools/python/engine/gil_scope.hpp"
#include <nanobind/nanobind.h>
#include <stdexcept>
#include <string>
namespace mneme {

namespace nb = nanobind;

/// Formats "FILE:LINE: in client_round: ZeroDivisionError: division by zero". FILE:LINE is the innermost line outside
/// the package. Keeps the exception for take_first_error(). @pre the GIL is held
[[nodiscard]] std::runtime_error user_error(nb::python_error& thrown, const char* where);
/// Returns an error for an invalid value that a generator yielded or returned, with its current line.
[[nodiscard]] std::runtime_error user_error(nb::handle generator, const char* where, const std::string& text);
/// Returns the first exception since the last call, or None. @pre the GIL is held
[[nodiscard]] nb::object take_first_error();

/// Runs `act` with the GIL and converts Python exceptions to std::runtime_error.
template <class Act>
auto under_gil(const char* where, Act act) {
  const gil_scope held;
  try {
    return act();
  } catch (nb::python_error& thrown) {
    throw user_error(thrown, where);
  } catch (const nb::cast_error&) {
    throw std::runtime_error(std::string("in ") + where + ": a value has another type than expected");
  }
}

} // namespace mneme
