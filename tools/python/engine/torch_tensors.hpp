/// torch_tensors: converts between LibTorch's tensors and torch's Python objects, without copies where possible.
#pragma once
#include "runtime/base/tensor_map.hpp"
#include <nanobind/nanobind.h>
namespace mneme {

namespace nb = nanobind;

/// Finds the functions that wrap tensors in the LibTorch loaded by `import torch`. Throws std::runtime_error if it is
/// not loaded.
void find_torch();

/// Returns a Python tensor that shares the memory of `value`, without its graph; None if `value` is undefined. Its
/// version starts at 0, so that was_written() detects writes to immutable tensors. @pre the GIL is held
[[nodiscard]] nb::object torch_object(const at::Tensor& value);
/// Returns a Python object of the same tensor with its graph, for autograd. @pre the GIL is held
[[nodiscard]] nb::object torch_wrapped(const at::Tensor& value);
/// Converts a Python tensor, with its graph. Throws std::invalid_argument for other objects. @pre the GIL is held
[[nodiscard]] at::Tensor graph_of(nb::handle object, const std::string& meaning);
/// True if Python has modified or replaced a tensor of torch_object(). @pre the GIL is held
[[nodiscard]] bool was_written(nb::handle shown);

/// Converts a Python tensor to a contiguous one without a graph; shares memory if possible. Throws
/// std::invalid_argument that names `meaning`. @pre the GIL is held
[[nodiscard]] at::Tensor tensor_of(nb::handle object, const std::string& meaning);
/// Converts weights of a net. Throws std::invalid_argument unless they are float32 [count] and, on a CPU, finite.
/// @pre the GIL is held
[[nodiscard]] at::Tensor flat_tensor_of(nb::handle object, std::int64_t count, const std::string& meaning);
/// Converts a mapping from names to torch tensors, numbers, or lists of numbers. Throws std::invalid_argument for
/// others.
[[nodiscard]] tensor_map tensors_of(nb::handle mapping, const std::string& meaning);
/// Converts to a dict of tensors; null gives an empty dict.
[[nodiscard]] nb::dict torch_dict(const tensor_map* tensors);
/// True if names, shapes, types and bits are equal.
[[nodiscard]] bool equal_bits(const tensor_map* a, const tensor_map* b);
[[nodiscard]] bool equal_bits(const at::Tensor& a, const at::Tensor& b);

} // namespace mneme
