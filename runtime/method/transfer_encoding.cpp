#include "runtime/method/transfer_encoding.hpp"
#include "runtime/base/check.hpp"
#include <algorithm>
namespace mneme {
namespace {

// Axis: P weights of a net.

/// Bytes of one float32 element in this format.
std::int64_t bytes_of_float(wire_format format) {
  switch (format) {
  case wire_format::fp32:
    return 4;
  case wire_format::fp16:
  case wire_format::bf16:
    return 2;
  case wire_format::int8:
    return 1;
  }
  MNEME_CHECK(false, static_cast<int>(format));
  return 0;
}

/// Quantizes and dequantizes with one scale, max |x| / 127. If a value is not finite, all results are NaN, so that
/// divergence remains visible.
at::Tensor through_int8(const at::Tensor& values) {
  if (values.numel() == 0)
    return values;
  const auto [least, most] = values.aminmax(); // both are NaN if any value is NaN
  const auto scale = least.neg().maximum(most).div(127.0);
  const auto step = scale.masked_fill(scale.eq(0.0), 1.0);            // scale is 0 if all values are zero or too small
                                                                      // to divide by
  return values.div(step).round_().clamp_(-127.0, 127.0).mul_(scale); // at::round rounds half to even
}

/// Offset of `size` flat weights in a net; these weights are either its first or its last parameters.
std::int64_t beginning_of(std::int64_t size, const std::vector<parameter>& layout) {
  const auto ends = [&](const parameter& entry) { return entry.offset + entry.size == size; };
  if (std::any_of(layout.begin(), layout.end(), ends))
    return 0;
  return layout.back().offset + layout.back().size - size;
}

/// Quantizes flat weights with one scale per parameter. The weights belong to a whole net, or to its first or last
/// layers.
at::Tensor through_int8(const at::Tensor& flat, const std::vector<parameter>& layout) {
  auto result = flat.new_empty(flat.sizes());
  const auto first = beginning_of(flat.numel(), layout);
  std::int64_t covered = 0;
  for (const auto& entry : layout) {
    const auto offset = entry.offset - first;
    if (offset < 0 || offset + entry.size > flat.numel())
      continue;
    result.narrow(0, offset, entry.size).copy_(through_int8(flat.narrow(0, offset, entry.size)));
    covered += entry.size;
  }
  MNEME_CHECK(flat.dim() == 1 && covered == flat.numel(), covered, flat.sizes());
  return result;
}

at::Tensor converted(const std::string& name, const at::Tensor& value, wire_format format,
                     const std::vector<parameter>& layout) {
  switch (format) {
  case wire_format::fp32:
    return value;
  case wire_format::fp16:
    return value.to(at::kHalf).to(at::kFloat);
  case wire_format::bf16:
    return value.to(at::kBFloat16).to(at::kFloat);
  case wire_format::int8:
    return name == flat_weights ? through_int8(value, layout) : through_int8(value);
  }
  MNEME_CHECK(false, static_cast<int>(format));
  return value;
}

} // namespace

std::int64_t wire_bytes(const tensor_map* tensors, wire_format format) {
  std::int64_t sum = 0;
  if (tensors)
    for (const auto& [name, value] : *tensors)
      sum += value.scalar_type() == at::kFloat ? value.numel() * bytes_of_float(format)
                                               : static_cast<std::int64_t>(value.nbytes());
  return sum;
}

tensors_ref convert_for_transfer(const tensors_ref& tensors, wire_format format, const std::vector<parameter>& layout) {
  if (!tensors || format == wire_format::fp32)
    return tensors;
  auto arrived = std::make_shared<tensor_map>();
  for (const auto& [name, value] : *tensors)
    arrived->put(name, value.scalar_type() == at::kFloat ? converted(name, value, format, layout) : value);
  return arrived;
}

} // namespace mneme
