#include "runtime/models/model.hpp"
#include "runtime/check.hpp"
#include "runtime/registry.hpp"
#include <ATen/ops/empty.h>
#include <algorithm>
#include <xxhash.h>
namespace mneme {

std::int64_t model::size() const noexcept {
  const auto& all = layout();
  return all.empty() ? 0 : all.back().offset + all.back().size;
}

at::Tensor initial_weights(const model& net, std::uint64_t seed) {
  auto flat = at::empty({net.size()}, at::kFloat); // [P]
  float* const weights = flat.mutable_data_ptr<float>();
  for (const auto& one : net.layout()) {
    auto key = key_for({.seed = seed}, purpose::initial_weights);
    key.index = XXH3_64bits(one.name.data(), one.name.size());
    rng_stream stream(key);
    for (std::int64_t i = 0; i < one.size; ++i)
      weights[one.offset + i] = static_cast<float>(stream.uniform(-one.bound, one.bound));
  }
  return flat;
}

std::vector<segment> trained_segments(const model& net, class_range classes, bool head_only) {
  std::vector<segment> all;
  for (const auto& one : net.layout()) {
    segment piece{one.offset, one.size};
    if (one.head) {
      MNEME_CHECK(0 <= classes.low && classes.high <= one.shape[0], classes.low, classes.high, one.name);
      const auto row = one.size / one.shape[0];
      piece = {one.offset + classes.low * row, classes.size() * row};
    } else if (head_only) {
      continue;
    }
    if (!all.empty() && all.back().offset + all.back().size == piece.offset)
      all.back().size += piece.size;
    else if (piece.size > 0)
      all.push_back(piece);
  }
  return all;
}

model_registration::model_registration(model_entry entry) { registered<model_entry>().push_back(std::move(entry)); }

std::vector<model_entry> models() { return registered_by_name<model_entry>(); }

} // namespace mneme
