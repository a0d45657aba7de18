/// gil_scope: holds the GIL in a scope, and keeps the thread's Python state between scopes.
#pragma once
#include <nanobind/nanobind.h>
namespace mneme {

/// An engine thread enters the interpreter several times in a client's round. With PyGILState_Ensure alone, each entry
/// would create a thread state and map a stack of 16 KiB, which would be half the cost of a small round.
class gil_scope {
public:
  gil_scope();
  ~gil_scope() { PyGILState_Release(state_); }
  gil_scope(const gil_scope&) = delete;
  gil_scope& operator=(const gil_scope&) = delete;

private:
  PyGILState_STATE state_;
};

} // namespace mneme
