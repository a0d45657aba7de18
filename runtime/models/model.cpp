#include "runtime/models/model.hpp"
#include "runtime/base/check.hpp"
#include "runtime/base/registry.hpp"
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <algorithm>
#include <xxhash.h>
namespace mneme {

std::int64_t model::size() const noexcept {
  const auto& parameters = layout();
  return parameters.empty() ? 0 : parameters.back().offset + parameters.back().size;
}

namespace {

/// Extents of the parameter as it lies in memory, where that is not as in files.
std::vector<std::int64_t> extents_in_memory(const parameter& which) {
  std::vector<std::int64_t> extents;
  for (const auto axis : which.order)
    extents.push_back(which.view[static_cast<std::size_t>(axis)]);
  return extents;
}

} // namespace

at::Tensor as_in_files(const at::Tensor& flat, const parameter& which) {
  const auto own = flat.narrow(0, which.offset, which.size);
  if (which.order.empty())
    return own.view(which.shape);
  std::vector<std::int64_t> back(which.order.size());
  for (std::size_t axis = 0; axis < which.order.size(); ++axis)
    back[static_cast<std::size_t>(which.order[axis])] = static_cast<std::int64_t>(axis);
  return own.view(extents_in_memory(which)).permute(back).reshape(which.shape);
}

void put_as_in_files(at::Tensor& flat, const parameter& which, const at::Tensor& values) {
  auto own = flat.narrow(0, which.offset, which.size);
  if (which.order.empty())
    own.view(which.shape).copy_(values);
  else
    own.view(extents_in_memory(which)).copy_(values.view(which.view).permute(which.order));
}

at::Tensor initial_weights(const model& net, std::uint64_t seed) {
  auto flat = at::empty({net.size()}, at::kFloat); // [P]
  for (const auto& parameter : net.layout()) {
    auto key = key_for({.seed = seed}, purpose::initial_weights);
    key.index = XXH3_64bits(parameter.name.data(), parameter.name.size());
    rng_stream stream(key);
    auto drawn = at::full({parameter.size}, parameter.constant, at::kFloat);
    float* const values = drawn.mutable_data_ptr<float>();
    for (std::int64_t i = 0; i < parameter.size && (parameter.bound > 0.0 || parameter.deviation > 0.0); ++i)
      values[i] = static_cast<float>(parameter.deviation > 0.0 ? parameter.deviation * stream.normal()
                                                               : stream.uniform(-parameter.bound, parameter.bound));
    put_as_in_files(flat, parameter, drawn.view(parameter.shape));
  }
  return flat;
}

bool is_trained(const parameter& entry, bool head_only) noexcept { return head_only ? entry.head : !entry.frozen; }

std::vector<segment> trained_segments(const model& net, class_range classes, bool head_only) {
  std::vector<segment> segments;
  for (const auto& parameter : net.layout()) {
    segment piece{parameter.offset, parameter.size};
    if (parameter.head && classes.size() == 0)
      continue; // the pass ends at the features
    if (parameter.head && !parameter.whole) {
      MNEME_CHECK(0 <= classes.low && classes.high <= parameter.shape[0], classes.low, classes.high, parameter.name);
      const auto row = parameter.size / parameter.shape[0];
      piece = {parameter.offset + classes.low * row, classes.size() * row};
    } else if (!is_trained(parameter, head_only) || parameter.buffer) {
      continue;
    }
    if (!segments.empty() && segments.back().offset + segments.back().size == piece.offset)
      segments.back().size += piece.size;
    else if (piece.size > 0)
      segments.push_back(piece);
  }
  return segments;
}

void model_kind::head_keys(key_table& table) {
  table.integers("head_hidden", head_.hidden, {.low = 1, .high = 65'536},
                 "Widths of hidden layers of the head, with ReLU; model.trainable = \"head\" trains them too.");
}

model_registration::model_registration(model_entry entry) { registered<model_entry>().push_back(std::move(entry)); }

std::vector<model_entry> models() { return registered_by_name<model_entry>(); }

} // namespace mneme
