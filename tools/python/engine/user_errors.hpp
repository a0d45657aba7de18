/// user_errors: exceptions of Python code that a run has called, as the run's own, with the user's file and line.
#pragma once
#include "tools/python/engine/held_gil.hpp"
#include <nanobind/nanobind.h>
#include <stdexcept>
#include <string>
namespace mneme {

namespace nb = nanobind;

/// "FILE:LINE: in client_round: ZeroDivisionError: division by zero", where FILE:LINE is the innermost line that is not
/// the package's own. The exception is kept for whoever waits for the run (take_first_error). @pre the GIL
[[nodiscard]] std::runtime_error user_error(nb::python_error& thrown, const char* where);
/// What is wrong with a value that a generator has yielded or returned, with the line at which it stands.
[[nodiscard]] std::runtime_error user_error(nb::handle generator, const char* where, const std::string& text);
/// The first exception since the last call, or None. @pre the GIL
[[nodiscard]] nb::object take_first_error();

/// Runs `act` under the GIL, and turns what Python throws into a std::runtime_error.
template <class Act>
auto under_gil(const char* where, Act act) {
  const held_gil held;
  try {
    return act();
  } catch (nb::python_error& thrown) {
    throw user_error(thrown, where);
  } catch (const nb::cast_error&) {
    throw std::runtime_error(std::string("in ") + where + ": a value has another type than expected");
  }
}

} // namespace mneme
