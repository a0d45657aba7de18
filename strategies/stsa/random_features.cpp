#include "strategies/stsa/random_features.hpp"
#include <ATen/ops/empty.h>
namespace mneme {

at::Tensor random_projection(const rng_key& key, std::int64_t features, std::int64_t width) {
  auto columns = at::empty({width, features}, at::kDouble);
  rng_stream draw(key);
  auto* const values = columns.mutable_data_ptr<double>();
  for (std::int64_t i = 0; i < columns.numel(); ++i)
    values[i] = static_cast<double>(static_cast<float>(draw.normal()));
  return columns.t().contiguous();
}

} // namespace mneme
