#include "runtime/method/flat_update.hpp"
#include "runtime/base/check.hpp"
#include <ATen/ATen.h>
#include <algorithm>
namespace mneme {
namespace {

/// The weights that correspond to a tensor of the upload. Returns null if there are none.
const at::Tensor* counterpart(const tensor_map& weights, const std::string& name, const at::Tensor& value) {
  const auto* const sent = weights.find(name);
  const bool fits =
      sent && value.scalar_type() == at::kFloat && sent->scalar_type() == at::kFloat && sent->numel() == value.numel();
  return fits ? sent : nullptr;
}

/// Calls act(name, value, sent) for each tensor that has weights.
template <class Act>
void each_weight(const tensor_map& upload, const tensor_map& weights, Act act) {
  for (const auto& [name, value] : upload)
    if (const auto* const sent = counterpart(weights, name, value))
      act(name, value, *sent);
}

std::int64_t weight_count(const tensor_map& upload, const tensor_map& weights) {
  std::int64_t count = 0;
  each_weight(upload, weights, [&](const auto&, const at::Tensor& value, const auto&) { count += value.numel(); });
  return count;
}

at::Tensor on_host(const at::Tensor& value) { return value.cpu().contiguous(); }

} // namespace

std::vector<double> flat_update(const tensor_map& upload, const tensor_map& weights) {
  std::vector<double> update;
  update.reserve(static_cast<std::size_t>(weight_count(upload, weights)));
  each_weight(upload, weights, [&](const auto&, const at::Tensor& value, const at::Tensor& sent) {
    const auto own = on_host(value), start = on_host(sent);
    const auto *a = own.const_data_ptr<float>(), *b = start.const_data_ptr<float>();
    for (std::int64_t i = 0; i < own.numel(); ++i)
      update.push_back(static_cast<double>(a[i]) - static_cast<double>(b[i]));
  });
  return update;
}

tensors_ref with_update(const tensor_map& upload, const tensor_map& weights, const std::vector<double>& update) {
  std::vector<float> values;
  values.reserve(update.size());
  each_weight(upload, weights, [&](const auto&, const auto&, const at::Tensor& sent) {
    const auto start = on_host(sent);
    const auto* const from = start.const_data_ptr<float>();
    for (std::int64_t i = 0; i < start.numel(); ++i)
      values.push_back(static_cast<float>(static_cast<double>(from[i]) + update.at(values.size())));
  });
  return with_values(upload, weights, values);
}

std::vector<float> flat_values(const tensor_map& upload, const tensor_map& weights) {
  std::vector<float> values;
  values.reserve(static_cast<std::size_t>(weight_count(upload, weights)));
  each_weight(upload, weights, [&](const auto&, const at::Tensor& value, const auto&) {
    const auto own = on_host(value);
    values.insert(values.end(), own.const_data_ptr<float>(), own.const_data_ptr<float>() + own.numel());
  });
  return values;
}

tensors_ref with_values(const tensor_map& upload, const tensor_map& weights, const std::vector<float>& values) {
  MNEME_CHECK(std::ssize(values) == weight_count(upload, weights), values.size());
  auto changed = std::make_shared<tensor_map>(upload);
  std::size_t first = 0;
  each_weight(upload, weights, [&](const std::string& name, const at::Tensor& value, const auto&) {
    auto part = at::empty(value.sizes(), at::kFloat);
    std::copy_n(values.data() + first, part.numel(), part.mutable_data_ptr<float>());
    first += static_cast<std::size_t>(part.numel());
    changed->put(name, part.to(value.device()));
  });
  return changed;
}

std::string tensor_without_weights(const tensor_map& upload, const tensor_map& weights) {
  for (const auto& [name, value] : upload)
    if (!counterpart(weights, name, value))
      return name;
  return {};
}

} // namespace mneme
