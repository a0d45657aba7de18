/// dropout: masks for dropout on a CPU.
#pragma once
#include "runtime/base/rng.hpp"
namespace mneme::kernels {

/// mask[i] = 0 with probability drop_below / 65,536, else 1. Uses 8-bit numbers of the stream if they are precise
/// enough, else 16-bit numbers. @pre drop_below < 65,536
void draw_dropout_mask(const stream_name& stream, std::uint32_t drop_below, std::uint8_t* mask, std::int64_t n);
/// out = in * scale where the mask is 1, else 0.
void apply_dropout_mask(const float* in, const std::uint8_t* mask, float scale, float* out, std::int64_t n);

} // namespace mneme::kernels
