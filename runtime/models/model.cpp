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

/// Axis sizes of the parameter in memory, if its order differs from the order in files.
std::vector<std::int64_t> extents_in_memory(const parameter& entry) {
  std::vector<std::int64_t> extents;
  for (const auto axis : entry.order)
    extents.push_back(entry.view[static_cast<std::size_t>(axis)]);
  return extents;
}

} // namespace

at::Tensor as_in_files(const at::Tensor& flat, const parameter& entry) {
  const auto own = flat.narrow(0, entry.offset, entry.size);
  if (entry.order.empty())
    return own.view(entry.shape);
  std::vector<std::int64_t> back(entry.order.size());
  for (std::size_t axis = 0; axis < entry.order.size(); ++axis)
    back[static_cast<std::size_t>(entry.order[axis])] = static_cast<std::int64_t>(axis);
  return own.view(extents_in_memory(entry)).permute(back).reshape(entry.shape);
}

void put_as_in_files(at::Tensor& flat, const parameter& entry, const at::Tensor& values) {
  auto own = flat.narrow(0, entry.offset, entry.size);
  if (entry.order.empty())
    own.view(entry.shape).copy_(values);
  else
    own.view(extents_in_memory(entry)).copy_(values.view(entry.view).permute(entry.order));
}

void hold_parameters(std::vector<parameter>& layout, const std::vector<bool>& chosen) {
  MNEME_CHECK(chosen.size() == layout.size(), chosen.size(), layout.size());
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    layout[i].held = layout[i].held || (chosen[i] && !layout[i].frozen);
    layout[i].frozen = layout[i].frozen || chosen[i];
  }
}

at::Tensor initial_values(const parameter& entry, std::uint64_t seed) {
  auto key = key_for({.seed = seed}, purpose::initial_weights);
  key.index = XXH3_64bits(entry.name.data(), entry.name.size());
  rng_stream stream(key);
  auto drawn = at::full({entry.size}, entry.constant, at::kFloat);
  float* const values = drawn.mutable_data_ptr<float>();
  for (std::int64_t i = 0; i < entry.size && (entry.bound > 0.0 || entry.deviation > 0.0); ++i)
    values[i] = static_cast<float>(entry.deviation > 0.0 ? entry.deviation * stream.normal()
                                                         : stream.uniform(-entry.bound, entry.bound));
  std::copy(entry.leading.begin(), entry.leading.end(), values);
  return drawn.view(entry.shape);
}

at::Tensor initial_weights(const model& net, std::uint64_t seed) {
  auto flat = at::empty({net.size()}, at::kFloat); // [P]
  for (const auto& entry : net.layout())
    put_as_in_files(flat, entry, initial_values(entry, seed));
  return flat;
}

void model_kind::head_keys(key_table& table) {
  table.integers("head_hidden", head_.hidden, {.low = 1, .high = 65'536},
                 "Widths of hidden layers of the head, with ReLU; model.trainable = \"head\" trains them too.");
}

model_registration::model_registration(model_entry entry) { registered<model_entry>().push_back(std::move(entry)); }

std::vector<model_entry> models() { return sort_by_name<model_entry>(); }

} // namespace mneme
