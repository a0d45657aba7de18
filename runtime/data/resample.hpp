/// resample: resizes parts of images bit for bit like Pillow: with antialiasing, in fixed point.
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

/// Resizes a box of an image and computes a part of the result (Pillow's Resample.c: along x, then along y, rounded to
/// bytes after each). The weights are computed once and serve all images of a size. Not thread-safe.
class resampler {
public:
  /// @param box input region @param height, width size of the resized box @param part region of the result to compute
  resampler(resampling how, const pixel_box& box, std::int64_t height, std::int64_t width, const pixel_box& part);
  /// image [C, H, W] -> out [C, part.height, part.width] @pre the box lies within the image
  void apply(const std::uint8_t* image, const std::array<std::int64_t, 3>& shape, std::uint8_t* out);

private:
  /// A pixel of the result: weights [weight, weight + count) times input pixels [first, first + count).
  struct mixture {
    std::int64_t first = 0, count = 0, weight = 0;
  };
  /// Filters along one axis for result pixels [part_first, part_first + part).
  struct axis {
    axis(resampling how, std::int64_t from, std::int64_t to, std::int64_t part_first, std::int64_t part);
    std::vector<mixture> pixels{};
    std::vector<std::int32_t> weights{};
  };
  pixel_box box_;
  axis lines_, columns_;
  std::vector<std::uint8_t> wide_; // [box.height, part.width]
};

/// Center crop of `height` x `width`, as in torchvision's CenterCrop: half pixels round to even.
[[nodiscard]] pixel_box middle_of(std::int64_t picture_height, std::int64_t picture_width, std::int64_t height,
                                  std::int64_t width);

} // namespace mneme
