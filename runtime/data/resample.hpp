/// resample: parts of images in another size as Pillow makes them, bit for bit: with antialiasing, in fixed point.
#pragma once
#include <array>
#include <cstdint>
#include <vector>
namespace mneme {

// Shapes: C channels, H height, W width.

enum class resampling : std::uint8_t { bilinear, bicubic };

struct pixel_box {
  std::int64_t top = 0, left = 0, height = 0, width = 0;
};

/// Brings a box of an image to another size, and makes a part of the result (Pillow's Resample.c: along x, then along
/// y, rounded to bytes after each). The weights are made once for all images of a size. Not for several threads.
class resampler {
public:
  /// @param box of the image @param height, width what it is brought to @param part of the result that is made
  resampler(resampling how, const pixel_box& box, std::int64_t height, std::int64_t width, const pixel_box& part);
  /// image [C, H, W] -> out [C, part.height, part.width] @pre the box lies within the image
  void apply(const std::uint8_t* image, const std::array<std::int64_t, 3>& shape, std::uint8_t* out);

private:
  /// A pixel of the result: `count` pixels of the box from `first` on, with as many weights from `weight` on.
  struct mixture {
    std::int64_t first = 0, count = 0, weight = 0;
  };
  /// All mixtures along one axis, of which `part` pixels from `part_first` on are made.
  struct axis {
    axis(resampling how, std::int64_t from, std::int64_t to, std::int64_t part_first, std::int64_t part);
    std::vector<mixture> pixels{};
    std::vector<std::int32_t> weights{};
  };
  pixel_box box_;
  axis lines_, columns_;
  std::vector<std::uint8_t> wide_; // [box.height, part.width]
};

/// The middle `height` x `width` of a picture, as torchvision's CenterCrop takes it: halves go to the even pixel.
[[nodiscard]] pixel_box middle_of(std::int64_t picture_height, std::int64_t picture_width, std::int64_t height,
                                  std::int64_t width);

} // namespace mneme
