#include "strategies/osi_fl/parameter_list.hpp"
#include "runtime/base/check.hpp"
#include <ATen/TensorOperators.h>
#include <ATen/ops/zeros.h>
#include <cmath>
#include <functional>
#include <numeric>
namespace mneme {
namespace {

std::int64_t product(std::span<const std::int64_t> sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), std::int64_t{1}, std::multiplies<>());
}

} // namespace

std::size_t parameter_list::add(std::vector<std::int64_t> shape, double bound) {
  const auto count = product(shape);
  entries_.push_back({.shape = std::move(shape), .size = count, .bound = bound});
  size_ += count;
  return entries_.size() - 1;
}

std::size_t parameter_list::add_layer(const std::vector<std::int64_t>& shape, bool zeros) {
  const auto inputs = product(std::span(shape).subspan(1));
  const double bound = zeros ? 0.0 : 1.0 / std::sqrt(static_cast<double>(inputs));
  const auto place = add(shape, bound);
  add({shape[0]}, bound);
  return place;
}

at::Tensor parameter_list::initial(const rng_key& key) const {
  auto flat = at::zeros({size_}, at::kFloat);
  auto* value = flat.mutable_data_ptr<float>();
  auto own = key;
  for (own.index = 0; own.index < entries_.size(); ++own.index) {
    const auto& [shape, size, bound] = entries_[own.index];
    rng_stream draw(own);
    for (std::int64_t i = 0; i < size; ++i, ++value)
      if (bound > 0.0)
        *value = static_cast<float>(draw.uniform(-bound, bound));
  }
  return flat;
}

std::vector<at::Tensor> parameter_list::parts(const at::Tensor& flat) const {
  MNEME_CHECK(flat.dim() == 1 && flat.size(0) == size_, flat.sizes(), size_);
  std::vector<std::int64_t> sizes;
  for (const auto& single : entries_)
    sizes.push_back(single.size);
  auto views = flat.split_with_sizes(sizes, 0);
  for (std::size_t i = 0; i < views.size(); ++i)
    views[i] = views[i].view(entries_[i].shape);
  return views;
}

} // namespace mneme
