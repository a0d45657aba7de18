#include "runtime/base/new_tensor.hpp"
#include <ATen/EmptyTensor.h>
namespace mneme {

/// Bypasses LibTorch's dispatcher, which takes longer than the allocation of a small tensor.
at::Tensor new_tensor(at::IntArrayRef shape, at::ScalarType type) {
  return at::Tensor(at::detail::empty_cpu(shape, at::TensorOptions(type)));
}

} // namespace mneme
