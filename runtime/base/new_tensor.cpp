#include "runtime/base/new_tensor.hpp"
#include <ATen/ops/empty.h>
namespace mneme {

at::Tensor new_tensor(at::IntArrayRef shape, at::ScalarType type) { return at::empty(shape, type); }

} // namespace mneme
