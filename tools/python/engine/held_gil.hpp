/// held_gil: the interpreter's lock for a scope, on a thread whose state in the interpreter is kept between scopes.
#pragma once
#include <nanobind/nanobind.h>
namespace mneme {

/// A thread of the engine enters the interpreter several times in a client's round. PyGILState_Ensure alone would make
/// a state for the thread each time, and with it map and unmap a stack of 16 KiB: half of what a small round costs.
class held_gil {
public:
  held_gil();
  ~held_gil() { PyGILState_Release(state_); }
  held_gil(const held_gil&) = delete;
  held_gil& operator=(const held_gil&) = delete;

private:
  PyGILState_STATE state_;
};

} // namespace mneme
