/// tensors: random tensors, and comparisons of tensors.
#pragma once
#include "runtime/base/rng.hpp"
#include <ATen/ATen.h> // before Catch2, whose CHECK must be the last definition

#include <catch2/catch_test_macros.hpp>
#include <cstring>
namespace mneme::test {

inline at::Tensor floats(const std::vector<float>& values) { return at::tensor(values, at::kFloat); }

/// Standard normal float32 values.
inline at::Tensor drawn(at::IntArrayRef sizes, std::uint64_t seed) {
  auto values = at::empty(sizes, at::kFloat);
  rng_stream draw({.seed = seed, .purpose = first_method_purpose});
  for (std::int64_t i = 0; i < values.numel(); ++i)
    values.mutable_data_ptr<float>()[i] = static_cast<float>(draw.normal());
  return values;
}

/// True if two float tensors hold the same bits.
inline bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  return a.sizes() == b.sizes() && std::memcmp(a.const_data_ptr(), b.const_data_ptr(), a.nbytes()) == 0;
}

/// Largest
/// a - b
/// of contiguous float32 tensors of equal size; a large number if either has NaN.
inline double largest_difference(const at::Tensor& a, const at::Tensor& b) {
  REQUIRE(a.numel() == b.numel());
  double largest = 0.0;
  for (std::int64_t i = 0; i < a.numel(); ++i) {
    const double difference =
        std::abs(static_cast<double>(a.const_data_ptr<float>()[i]) - b.const_data_ptr<float>()[i]);
    largest = difference <= largest ? largest : (difference == difference ? difference : 1e30);
  }
  return largest;
}

} // namespace mneme::test
