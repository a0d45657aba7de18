#include "runtime/training/group_teacher.hpp"
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
namespace mneme {

activations group_teacher::compute_outputs(const model& net, model_run run, const at::Tensor& inputs,
                                           tape& memory) const {
  std::vector<at::Tensor> features, logits;
  std::vector<std::vector<at::Tensor>> maps(maps_.size());
  memory.for_backward = false;
  memory.maps = maps_;
  for (auto k = run.first, last = k; k < run.first + run.count; k = last) {
    const auto& weights = weights_[static_cast<std::size_t>(k)];
    while (last < run.first + run.count && weights_[static_cast<std::size_t>(last)].is_same(weights))
      ++last;
    const auto shared = inputs.narrow(0, k - run.first, last - k);
    const auto outputs = net.forward(weights.unsqueeze(0), shared, view_.classes, &memory);
    if (view_.features)
      features.push_back(outputs.features.contiguous());
    if (view_.classes.size() > 0)
      logits.push_back(outputs.logits.contiguous());
    for (std::size_t m = 0; m < maps.size(); ++m)
      maps[m].push_back(outputs.maps[m]);
  }
  const auto whole = [](const std::vector<at::Tensor>& parts) {
    return parts.empty() ? at::Tensor{} : parts.size() == 1 ? parts[0] : at::cat(parts);
  };
  activations shown{.features = whole(features), .logits = whole(logits)};
  for (const auto& parts : maps)
    shown.maps.push_back(whole(parts));
  return shown;
}

activations group_teacher::stored_outputs(model_run run, std::span<const std::span<const std::int64_t>> positions,
                                          std::int64_t rows, std::int64_t feature_width) const {
  activations shown;
  if (view_.features)
    shown.features = at::empty({run.count, rows, feature_width}, at::kFloat);
  if (view_.classes.size() > 0)
    shown.logits = at::empty({run.count, rows, view_.classes.size()}, at::kFloat);
  const auto place_in = [](at::Tensor& whole, std::size_t i) {
    return whole.defined() ? whole.mutable_data_ptr<float>() + static_cast<std::int64_t>(i) * whole.stride(0) : nullptr;
  };
  for (std::size_t i = 0; i < positions.size(); ++i)
    kept_[static_cast<std::size_t>(run.first) + i].copy_to(positions[i], rows, place_in(shown.features, i),
                                                           place_in(shown.logits, i));
  return shown;
}

} // namespace mneme
