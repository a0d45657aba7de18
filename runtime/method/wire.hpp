/// wire: what tensors weigh on a link, and what a link does to them.
#pragma once
#include "runtime/base/tensor_map.hpp"
#include "runtime/models/model.hpp"
#include "runtime/settings/scenario.hpp"
namespace mneme {

/// Payload bytes of `tensors` in `format`: float32 tensors at 4, 2, 2 or 1 bytes an element, others
/// as they are. No names, no headers, no scales. Null: 0.
[[nodiscard]] std::int64_t wire_bytes(const tensor_map* tensors, wire_format format);

/// `tensors` after the journey: float32 tensors converted to `format` and back (int8: symmetric,
/// one scale per tensor, max |x| / 127, round to even; `flat_weights` one scale per parameter of
/// `layout`). fp32: the same handle.
[[nodiscard]] tensors_ref across_the_wire(const tensors_ref& tensors, wire_format format,
                                          const std::vector<parameter>& layout);

} // namespace mneme
