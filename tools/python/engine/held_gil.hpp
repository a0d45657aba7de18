/// held_gil: holds the GIL in a scope, and keeps the thread's Python state between scopes.
#pragma once
#include <nanobind/nanobind.h>
namespace mneme {

/// An engine thread enters the interpreter several times in a client's round. With PyGILState_Ensure alone, each entry
/// would create a thread state and map a stack of 16 KiB: half the cost of a small round.
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
