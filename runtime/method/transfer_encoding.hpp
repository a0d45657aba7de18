/// transfer_encoding: size of tensors on a network link, and their conversion to the link's number format.
#pragma once
#include "runtime/base/tensor_map.hpp"
#include "runtime/models/model.hpp"
#include "runtime/settings/scenario.hpp"
namespace mneme {

/// Returns the payload bytes of `tensors` in `format`. A float32 element takes 4, 2 or 1 bytes; other types keep their
/// size. Names, headers and scales are not counted. Null: 0.
[[nodiscard]] std::int64_t wire_bytes(const tensor_map* tensors, wire_format format);

/// Returns `tensors` after a transfer: float32 tensors are converted to `format` and back; fp32 returns the same
/// handle. int8 is symmetric with scale max |x| / 127 and rounds half to even. It uses one scale per tensor, or for
/// `flat_weights` one per parameter of `layout`.
[[nodiscard]] tensors_ref convert_for_transfer(const tensors_ref& tensors, wire_format format,
                                               const std::vector<parameter>& layout);

} // namespace mneme
