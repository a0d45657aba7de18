/// autograd_on: LibTorch's autograd in a thread that computes without it.
#pragma once
#include <ATen/core/grad_mode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
namespace mneme {

/// Autograd as a fresh thread has it, whatever the caller has switched off, until the end of the block.
class autograd_on {
public:
  autograd_on() : keys_(c10::impl::LocalDispatchKeySet(c10::impl::PODLocalDispatchKeySet{})), gradients_(true) {}

private:
  c10::impl::ForceDispatchKeyGuard keys_;
  at::AutoGradMode gradients_;
};

} // namespace mneme
