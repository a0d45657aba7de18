#include "strategies/stsa/dummy_clients.hpp"
#include <algorithm>
#include <numeric>
namespace mneme {

std::shared_ptr<const std::vector<std::int32_t>> dummy_of_rows(const sample_view& samples, std::int64_t parts,
                                                               dummy_split split, const rng_key& key) {
  if (split == dummy_split::file)
    return samples.marks;

  std::vector<std::int64_t> order(static_cast<std::size_t>(samples.size()));
  std::iota(order.begin(), order.end(), 0);
  rng_stream(key).shuffle(std::span(order));
  const auto label = [&](std::int64_t i) {
    return samples.source->label((*samples.rows)[static_cast<std::size_t>(i)]);
  };
  if (split == dummy_split::stratified)
    std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return label(a) < label(b); });

  const auto each = samples.size() / parts;
  auto parts_of_rows = std::make_shared<std::vector<std::int32_t>>(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    const auto at = static_cast<std::int64_t>(i);
    const auto part = split == dummy_split::stratified ? at % parts
                      : each == 0                      ? parts - 1
                                                       : std::min(at / each, parts - 1);
    (*parts_of_rows)[static_cast<std::size_t>(order[i])] = static_cast<std::int32_t>(part);
  }
  return parts_of_rows;
}

} // namespace mneme
