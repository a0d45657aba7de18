/// image_generator: what methods share that make images of old classes through a frozen net, without data: the
/// generator, crops of what it makes, draws, and what such methods ask of a run (LANDER, TARGET).
#pragma once
#include "runtime/base/rng.hpp"
#include "runtime/method/strategy.hpp"
#include <array>
namespace mneme {

// Axes: K models, B images of a batch, N of a pool.

/// Layers of a generator that reads `inputs` numbers: linear, two upsamplings with convolutions, sigmoid; of shapes
/// whose sides do not divide by 4, two linear layers. Features are pixels in [0, 1], channels last.
[[nodiscard]] model_ref image_generator(std::array<std::int64_t, 3> shape, std::int64_t inputs, std::int64_t filters);
/// Its images as nets read them: [K, B, channels, height, width]. @param features [K, B, height width channels]
[[nodiscard]] at::Tensor pictures_of(const at::Tensor& features, const std::array<std::int64_t, 3>& shape);

/// Crops of images padded by 4 zeros, mirrored where asked for: [B, channels, height, width], to any order of autograd.
/// @param views [B, 3] int64 on the host: rows and columns from the padded corner, 0 .. 8, and 1 where mirrored
[[nodiscard]] at::Tensor viewed(const at::Tensor& images, const at::Tensor& views);
inline constexpr std::int64_t view_padding = 4;

/// Crops and mirrorings: [rows, 3] int64.
[[nodiscard]] at::Tensor drawn_views(std::int64_t rows, rng_stream& draw);
/// Standard normal numbers.
[[nodiscard]] at::Tensor drawn_normal(at::IntArrayRef sizes, const rng_key& key);

/// Numbers of the first `count` of N images, or of all, by the names that public code gives their files,
/// "round-image.png", as text: [.] int64. @param batch images of a round
[[nodiscard]] at::Tensor first_by_name(std::int64_t images, std::int64_t batch, std::int64_t count);

/// What is wrong with net, data and tasks for a generator that matches batch statistics of a net which learns classes
/// task by task.
[[nodiscard]] diagnostics wrong_with_generation(const method_setup& setup);

} // namespace mneme
