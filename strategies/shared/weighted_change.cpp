#include "strategies/shared/weighted_change.hpp"
#include "runtime/base/archive.hpp"
#include "runtime/base/check.hpp"
#include "runtime/kernels/fold.hpp"
#include <ATen/ATen.h>
#include <algorithm>
namespace mneme {
namespace {

constexpr std::size_t starts_held_max = 16; // old models that stay in memory until they are summed

} // namespace

void weighted_change::add(const at::Tensor& value, const at::Tensor& start, double weight) {
  check_upload(value, weight, sum_);
  check_upload(start, weight, value);
  if (!sum_.defined())
    sum_ = at::zeros_like(value, value.options().dtype(at::kDouble));
  empty_ = false;
  waiting_.push_back({.values = value, .weight = weight});
  const auto known = std::find_if(starts_.begin(), starts_.end(), [&](const weighted_upload& known_start) {
    return known_start.values.is_same(start);
  });
  if (known != starts_.end())
    known->weight -= weight;
  else
    starts_.push_back({.values = start, .weight = -weight});
  if (waiting_.size() == kernels::folded_at_once_max)
    fold_waiting();
  if (starts_.size() > starts_held_max)
    fold_starts();
}

void weighted_change::fold_waiting() {
  fold_uploads(sum_, waiting_);
  waiting_.clear();
}

void weighted_change::fold_starts() {
  fold_uploads(sum_, starts_);
  starts_.clear();
}

/// What waits is kept apart: when it is folded, and by which starts, decides the last bits.
void weighted_change::persist(archive& state) {
  state(sum_);
  for (auto* held : {&waiting_, &starts_}) {
    std::uint64_t count = held->size();
    state(count);
    if (state.loading())
      held->clear();
    for (std::uint64_t i = 0; i < count; ++i) {
      auto& upload = state.loading() ? held->emplace_back() : (*held)[i];
      state.frozen(upload.values)(upload.weight);
    }
  }
}

at::Tensor weighted_change::take(const at::Tensor& base, double scale) {
  MNEME_CHECK(!empty());
  fold_waiting();
  fold_starts();
  auto moved = sum_.mul_(scale).add_(base).to(at::kFloat);
  sum_.zero_();
  empty_ = true;
  return moved;
}

} // namespace mneme
