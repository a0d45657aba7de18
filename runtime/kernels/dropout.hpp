/// Masks of dropout on a CPU.
#pragma once
#include "runtime/base/rng.hpp"
namespace mneme::kernels {

/// mask[i] = 0 with chance drop_below / 65,536, else 1, by a number of the stream below drop_below: of 8 bits where
/// these are enough, else of 16. @pre drop_below < 65,536
void draw_dropout_mask(const stream_name& stream, std::uint32_t drop_below, std::uint8_t* mask, std::int64_t n);
/// out = in * scale where the mask is 1, else 0.
void apply_dropout_mask(const float* in, const std::uint8_t* mask, float scale, float* out, std::int64_t n);

} // namespace mneme::kernels
