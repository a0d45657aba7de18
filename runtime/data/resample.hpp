/// resample: resizes parts of images with antialiasing in fixed point. Results are bit-identical to Pillow's.
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

/// Resizes a box of an image and computes a part of the result like Pillow's Resample.c: first along x, then along y,
/// each rounded to bytes. The weights are computed once and used for all images of a size. Not thread-safe.
class resampler {
public:
  /// @param box input region @param height, width size of the resized box @param part region of the result to compute
  resampler(resampling how, const pixel_box& box, std::int64_t height, std::int64_t width, const pixel_box& part);
  /// Resizes one image: [C, H, W] -> out [C, part.height, part.width]. @pre the box is within the image
  void apply(const std::uint8_t* image, const std::array<std::int64_t, 3>& shape, std::uint8_t* out);

private:
  /// One result pixel: the sum of `count` input pixels from `first`, with the weights from index `weight`.
  struct mixture {
    std::int64_t first = 0, count = 0, weight = 0;
  };
  /// The filters along one axis, for result pixels [part_first, part_first + part).
  struct axis {
    axis(resampling how, std::int64_t from, std::int64_t to, std::int64_t part_first, std::int64_t part);
    std::vector<mixture> pixels{};
    std::vector<std::int32_t> weights{};
  };
  pixel_box box_;
  axis lines_, columns_;
  std::vector<std::uint8_t> wide_; // intermediate result [box.height, part.width]
};

/// The center crop of `height` x `width` as in torchvision's CenterCrop, where half pixels round to even.
[[nodiscard]] pixel_box middle_of(std::int64_t image_height, std::int64_t image_width, std::int64_t height,
                                  std::int64_t width);

} // namespace mneme
