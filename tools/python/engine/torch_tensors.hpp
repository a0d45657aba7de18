/// torch_tensors: LibTorch's tensors as torch's objects and back, without a copy.
#pragma once
#include "runtime/base/tensor_map.hpp"
#include <nanobind/nanobind.h>
namespace mneme {

namespace nb = nanobind;

/// Finds what wraps tensors in the LibTorch that `import torch` has loaded. Throws std::runtime_error where there is
/// none.
void find_torch();

/// A tensor of Python's that shares the memory of `value` and nothing else: it has no graph, and its version counts
/// from 0, so that a write into what is frozen can be told (was_written). Undefined: None. @pre the GIL
[[nodiscard]] nb::object torch_object(const at::Tensor& value);
/// The tensor itself, with its graph: what autograd follows. @pre the GIL
[[nodiscard]] nb::object torch_wrapped(const at::Tensor& value);
/// A tensor of Python's with its graph. Throws std::invalid_argument unless it is one. @pre the GIL
[[nodiscard]] at::Tensor graph_of(nb::handle object, const std::string& meaning);
/// True where Python has written into what torch_object() made, or put something else there. @pre the GIL
[[nodiscard]] bool was_written(nb::handle shown);

/// The tensor of a torch.Tensor, contiguous and without its graph, sharing its memory where it can.
/// Throws std::invalid_argument, saying what `meaning` should be. @pre the GIL
[[nodiscard]] at::Tensor tensor_of(nb::handle object, const std::string& meaning);
/// The same of finite float32 [count]: weights of a net.
[[nodiscard]] at::Tensor flat_tensor_of(nb::handle object, std::int64_t count, const std::string& meaning);
/// Tensors by name from a mapping whose values are torch tensors, numbers, or lists of numbers.
[[nodiscard]] tensor_map tensors_of(nb::handle mapping, const std::string& meaning);
/// The other way round: a dict of tensors. Null: an empty one.
[[nodiscard]] nb::dict torch_dict(const tensor_map* tensors);
/// True if both have the same names, shapes, types and bits.
[[nodiscard]] bool equal_bits(const tensor_map* a, const tensor_map* b);
[[nodiscard]] bool equal_bits(const at::Tensor& a, const at::Tensor& b);

} // namespace mneme
