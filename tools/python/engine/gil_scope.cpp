#include "tools/python/engine/gil_scope.hpp"
namespace mneme {
namespace {

/// Python thread state of an engine thread, kept from its first scope to the end of the thread.
class kept_thread_state {
public:
  kept_thread_state() {
    if (PyGILState_GetThisThreadState())
      return;
    first_ = PyGILState_Ensure();
    state_ = PyEval_SaveThread();
  }
  ~kept_thread_state() {
    if (!state_ || !Py_IsInitialized())
      return;
    PyEval_RestoreThread(state_);
    PyGILState_Release(first_);
  }
  kept_thread_state(const kept_thread_state&) = delete;
  kept_thread_state& operator=(const kept_thread_state&) = delete;

private:
  PyThreadState* state_ = nullptr; // null for a thread created by Python
  PyGILState_STATE first_ = PyGILState_UNLOCKED;
};

} // namespace

gil_scope::gil_scope() {
  static thread_local const kept_thread_state kept;
  state_ = PyGILState_Ensure();
}

} // namespace mneme
