/// autograd_on: enables LibTorch's autograd on a thread where it is disabled.
#pragma once
#include <ATen/core/grad_mode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
namespace mneme {

/// Enables autograd with its default settings until the end of the scope.
class autograd_on {
public:
  autograd_on() : keys_(c10::impl::LocalDispatchKeySet(c10::impl::PODLocalDispatchKeySet{})), gradients_(true) {}

private:
  c10::impl::ForceDispatchKeyGuard keys_;
  at::AutoGradMode gradients_;
};

} // namespace mneme
