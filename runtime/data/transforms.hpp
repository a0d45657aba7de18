/// transforms: pixel transforms of the tasks of a domain-incremental run.
#pragma once
#include "runtime/base/rng.hpp"
#include "runtime/data/dataset.hpp"
#include "runtime/settings/scenario.hpp"
namespace mneme {

/// A shear along x, then a rotation, around the center of the image; x points right, y points down.
struct affine_change {
  double rotation_degrees = 0.0; ///< Positive values rotate clockwise as displayed.
  double shear = 0.0;            ///< Shift to the right in pixels, per pixel down.
  bool invert = false;
};
/// Draws a rotation in U(-45, 45) degrees, a shear in U(-0.3, 0.3), and an inversion with probability 1/2.
[[nodiscard]] affine_change draw_affine(rng_stream& stream);

/// The transform as bilinear taps; pixels outside of the image are 0.
[[nodiscard]] pixel_map affine_pixels(std::int64_t height, std::int64_t width, const affine_change& change);

/// Draws a random permutation of all `pixels` = C * H * W values of an image.
[[nodiscard]] pixel_map permute_pixels(std::int64_t pixels, rng_stream& stream);

/// One map per task: the identity for the first task, then random maps of `kind` (permute or affine), keyed by seed and
/// task. @param shape C, H, W
[[nodiscard]] std::vector<pixel_map> task_transforms(task_transform kind, std::int64_t tasks,
                                                     std::array<std::int64_t, 3> shape, std::uint64_t seed);

} // namespace mneme
