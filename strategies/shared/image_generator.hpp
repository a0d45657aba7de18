/// image_generator: shared parts of methods that synthesize images of old classes by inverting a frozen net, without
/// data (LANDER, TARGET): the generator, augmentation, random draws and setup checks.
#pragma once
#include "runtime/base/rng.hpp"
#include "runtime/method/strategy.hpp"
#include <array>
namespace mneme {

// Axes: K models, B images of a batch, N images of a pool.

/// Builds a generator that maps `inputs` numbers to an image: a linear layer, two stages of upsampling and convolution,
/// and a sigmoid. If height or width is not divisible by 4, the generator has two linear layers instead. Its features
/// are pixels in [0, 1], channels last.
[[nodiscard]] model_ref image_generator(std::array<std::int64_t, 3> shape, std::int64_t inputs, std::int64_t filters);
/// Reshapes generated features to images [K, B, channels, height, width].
/// @param features [K, B, height * width * channels]
[[nodiscard]] at::Tensor images_of(const at::Tensor& features, const std::array<std::int64_t, 3>& shape);

/// Pads images by 4 zeros, crops them, and mirrors some of them. Returns [B, channels, height, width]. Differentiable
/// to any order.
/// @param views [B, 3] int64 on the host: row and column of the crop (0 .. 8), and 1 if the image is mirrored
[[nodiscard]] at::Tensor crop_and_flip(const at::Tensor& images, const at::Tensor& views);
inline constexpr std::int64_t view_padding = 4;

/// Draws crops and mirror flags for `rows` images: [rows, 3] int64.
[[nodiscard]] at::Tensor draw_crops(std::int64_t rows, rng_stream& draw);
/// Draws standard normal numbers, float32 on the host.
[[nodiscard]] at::Tensor draw_normal(at::IntArrayRef sizes, const rng_key& key);

/// Returns the numbers (int64) of the first `count` of N images in the order of their file names. The official programs
/// name the files "round-image.png" and sort the names as text. @param batch number of images of one round
[[nodiscard]] at::Tensor first_by_name(std::int64_t images, std::int64_t batch, std::int64_t count);

/// Validates net, data and tasks for a generator that matches batch normalization statistics. Returns an empty list if
/// the setup is valid.
[[nodiscard]] diagnostics validate_generation(const method_setup& setup);

} // namespace mneme
