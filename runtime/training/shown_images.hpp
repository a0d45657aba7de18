/// shown_images: images of a data set in the size that nets see, whole or a random part of each.
#pragma once
#include "runtime/data/dataset.hpp"
#include "runtime/data/resample.hpp"
#include <optional>
namespace mneme {

/// The part of an image of height x width pixels that `draw` names: 5 % to all of its area, three to four to four to
/// three in shape, anywhere; what does not fit within ten draws is the largest part of such a shape in the middle
/// (torchvision's RandomResizedCrop with scale 0.05 to 1, as for Szegedy et al. 2015, section 6, with 0.08).
[[nodiscard]] pixel_box drawn_part(std::uint64_t draw, std::int64_t height, std::int64_t width);

/// Not for several threads.
class image_viewer {
public:
  explicit image_viewer(const dataset& source);
  /// The bytes of an image [C, H, W] as it is shown, [source.shape()]: brought to its size by bicubic interpolation, of
  /// which the middle is taken; or by bilinear interpolation the part that is drawn. Good until the next call.
  const std::uint8_t* shown(const std::uint8_t* image, const std::optional<std::uint64_t>& part);

private:
  std::array<std::int64_t, 3> stored_, shape_;
  std::optional<resampler> whole_;
  std::vector<std::uint8_t> bytes_;
};

} // namespace mneme
