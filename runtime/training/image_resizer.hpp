/// image_resizer: resizes images of a data set to the input size of nets, as a whole or as a random crop.
#pragma once
#include "runtime/data/dataset.hpp"
#include "runtime/data/resample.hpp"
#include <optional>
namespace mneme {

/// Random crop of an image of height x width pixels. `draw` determines the crop. It is drawn like torchvision's
/// RandomResizedCrop with scale 0.05 to 1 (Szegedy et al. 2015, section 6, use 0.08). The crop has 5 % to 100 % of the
/// image's area and an aspect ratio of 3:4 to 4:3. If none of ten draws fits the image, the result is the largest
/// centered crop with such a ratio.
[[nodiscard]] pixel_box random_crop_box(std::uint64_t draw, std::int64_t height, std::int64_t width);

/// Resizes images. Not thread-safe.
class image_resizer {
public:
  explicit image_resizer(const dataset& source);
  /// Returns the bytes of an image [C, H, W] at the size source.shape(), valid until the next call. The whole image is
  /// resized by bicubic interpolation and cropped at the center. With `part`, a random crop is resized by bilinear
  /// interpolation.
  const std::uint8_t* resize(const std::uint8_t* image, const std::optional<std::uint64_t>& part);

private:
  std::array<std::int64_t, 3> stored_, shape_;
  std::optional<resampler> whole_;
  std::vector<std::uint8_t> bytes_;
};

} // namespace mneme
