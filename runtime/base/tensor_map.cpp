#include "runtime/base/tensor_map.hpp"
#include "runtime/base/check.hpp"
#include <stdexcept>
namespace mneme {

void tensor_map::put(std::string name, at::Tensor value) {
  MNEME_CHECK(value.defined() && value.is_contiguous(), name);
  entries_.insert_or_assign(std::move(name), std::move(value));
}

const at::Tensor& tensor_map::at(std::string_view name) const {
  if (const auto* value = find(name))
    return *value;
  std::string text = "no tensor is named '" + std::string(name) + "'; expected one of:";
  for (const auto& [other, value] : entries_)
    text += " '" + other + "'";
  throw std::out_of_range(text);
}

const at::Tensor* tensor_map::find(std::string_view name) const noexcept {
  auto entry = entries_.find(name);
  return entry == entries_.end() ? nullptr : &entry->second;
}

std::int64_t tensor_map::bytes() const noexcept {
  std::int64_t sum = 0;
  for (const auto& [name, value] : entries_)
    sum += static_cast<std::int64_t>(value.nbytes());
  return sum;
}

tensors_ref weights_only(at::Tensor flat) {
  auto map = std::make_shared<tensor_map>();
  map->put(flat_weights, std::move(flat));
  return map;
}

} // namespace mneme
