/// reference_gather: gather() row by row with ATen operations, as reference for both kernels.
#pragma once
#include "runtime/training/gather.hpp"
#include <ATen/ATen.h> // before Catch2, whose CHECK must be the last definition

namespace mneme::test {

// Axes: B rows; C channels, H height, W width.

/// Applies `map` to an image [C, H, W] float32 in 0 to 255.
inline at::Tensor reference_transformed(const pixel_map& map, const at::Tensor& image) {
  if (map.pixels.empty())
    return map.invert ? 255 - image : image;
  const auto source = map.across_channels ? image.flatten() : image.flatten(1); // [C * H * W] or [C, H * W]
  auto sum = at::zeros_like(source);
  for (std::size_t t = 0; t < 4; ++t) {
    std::vector<std::int64_t> from;
    std::vector<float> weight;
    for (const auto& taps : map.pixels) {
      from.push_back(std::max(taps.from[t], 0));
      weight.push_back(taps.from[t] >= 0 ? taps.weight[t] : 0.0F);
    }
    sum += source.index_select(-1, at::tensor(from, at::kLong)) * at::tensor(weight, at::kFloat);
  }
  sum = sum.view(image.sizes());
  return map.invert ? 255 - sum : sum;
}

/// Pads image [C, H, W] with black, crops, flips and brightens it.
inline at::Tensor reference_augmented(const augmentation& how, const at::Tensor& image) {
  const auto border = crop_padding_px;
  const auto padded = at::constant_pad_nd(image, {border, border, border, border});
  const auto crop = padded.narrow(1, border + how.down, image.size(1)).narrow(2, border + how.right, image.size(2));
  return ((how.flip ? crop.flip(2) : crop) * how.brightness).clamp_max(255.0);
}

/// Same arguments as gather(). Returns [B, C, H, W] float32.
inline at::Tensor reference_gather(const dataset& source, std::span<const std::int64_t> rows,
                                   std::span<const augmentation> augment) {
  const auto per_channel = [](const std::vector<float>& values) {
    return at::tensor(values, at::kFloat).view({-1, 1, 1});
  };
  std::vector<at::Tensor> made;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i] == padding_row) {
      made.push_back(at::zeros(source.images[0].sizes(), at::kFloat));
      continue;
    }
    const auto& map = source.transforms.at(static_cast<std::size_t>(rows[i] / source.files_rows()));
    auto image = reference_transformed(map, source.images[rows[i] % source.files_rows()].to(at::kFloat));
    if (!augment.empty())
      image = reference_augmented(augment[i], image);
    made.push_back(image * per_channel(source.scale) + per_channel(source.shift));
  }
  return at::stack(made);
}

} // namespace mneme::test
