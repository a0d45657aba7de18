/// drawn_floats: random numbers for tests of kernels, without tensors.
#pragma once
#include "runtime/base/rng.hpp"
#include <cstdint>
#include <vector>
namespace mneme::test {

/// Draws n numbers, uniform over [-reach, reach).
inline std::vector<float> drawn_floats(std::int64_t n, std::uint64_t seed, double reach = 1.0) {
  rng_stream draw({.seed = seed, .purpose = first_method_purpose});
  std::vector<float> values(static_cast<std::size_t>(n));
  for (auto& value : values)
    value = static_cast<float>(draw.uniform(-reach, reach));
  return values;
}

} // namespace mneme::test
