#include "runtime/base/check.hpp"
#include "runtime/training/gather.hpp"
#include <ATen/ATen.h>
#include <set>
namespace mneme {
namespace {

// Axes: B rows; C channels, H height, W width; D = C * H * W pixels.

at::Tensor index_tensor(const std::vector<std::int64_t>& values, const at::Device& device) {
  return at::tensor(values, at::kLong).to(device);
}

/// rows [n, C, H, W] float32 in 0..255 -> the same rows as `map` shows them.
at::Tensor transformed(const pixel_map& map, const at::Tensor& rows) {
  auto result = rows;
  if (!map.pixels.empty()) {
    const auto source = map.across_channels ? rows.flatten(1) : rows.flatten(2); // [n, D] or [n, C, H * W]
    auto sum = at::zeros_like(source);
    for (std::size_t t = 0; t < 4; ++t) {
      std::vector<std::int64_t> from;
      std::vector<float> weight;
      for (const auto& taps : map.pixels) {
        from.push_back(std::max(taps.from[t], 0));
        weight.push_back(taps.from[t] >= 0 ? taps.weight[t] : 0.0F);
      }
      sum +=
          source.index_select(-1, index_tensor(from, rows.device())) * at::tensor(weight, at::kFloat).to(rows.device());
    }
    result = sum.view(rows.sizes());
  }
  return map.invert ? 255 - result : result;
}

/// images [B, C, H, W] -> cropped and flipped: every pixel looks up where it came from.
at::Tensor cropped(const at::Tensor& images, std::span<const augmentation> augment) {
  const auto rows = images.size(0), channels = images.size(1), height = images.size(2), width = images.size(3);
  std::vector<std::int64_t> down, right, flip;
  for (const auto& how : augment)
    down.push_back(how.down), right.push_back(how.right), flip.push_back(how.flip);
  const auto device = images.device();
  const auto y = at::arange(height, at::kLong).to(device).view({1, height, 1}) +
                 index_tensor(down, device).view({rows, 1, 1}); // [B, H, 1]
  const auto straight = at::arange(width, at::kLong).to(device).view({1, 1, width});
  const auto x = at::where(index_tensor(flip, device).view({rows, 1, 1}) != 0, width - 1 - straight, straight) +
                 index_tensor(right, device).view({rows, 1, 1});        // [B, 1, W]
  const auto inside = (y >= 0) & (y < height) & (x >= 0) & (x < width); // [B, H, W]
  const auto from = (y.clamp(0, height - 1) * width + x.clamp(0, width - 1)).view({rows, 1, height * width});
  const auto looked_up = images.flatten(2).gather(2, from.expand({rows, channels, height * width}));
  return looked_up.view(images.sizes()) * inside.unsqueeze(1);
}

} // namespace

at::Tensor composite_gather(const dataset& source, const at::Tensor& images, std::span<const std::int64_t> rows,
                            std::span<const augmentation> augment) {
  MNEME_CHECK(augment.empty() || augment.size() == rows.size(), augment.size(), rows.size());
  const auto files = source.files_rows();
  const auto device = images.device();
  std::vector<std::int64_t> file_rows, padding;
  std::set<std::int64_t> maps;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const bool real = rows[i] != padding_row;
    file_rows.push_back(real ? rows[i] % files : 0);
    if (real)
      maps.insert(rows[i] / files);
    else
      padding.push_back(static_cast<std::int64_t>(i));
  }
  auto result = images.index_select(0, index_tensor(file_rows, device)).to(at::kFloat); // [B, C, H, W]
  for (const auto map : maps) {
    const auto& how = source.transforms.at(static_cast<std::size_t>(map));
    if (how.pixels.empty() && !how.invert)
      continue;
    std::vector<std::int64_t> where;
    for (std::size_t i = 0; i < rows.size(); ++i)
      if (rows[i] != padding_row && rows[i] / files == map)
        where.push_back(static_cast<std::int64_t>(i));
    const auto index = index_tensor(where, device);
    result.index_copy_(0, index, transformed(how, result.index_select(0, index)));
  }
  if (!augment.empty()) {
    std::vector<float> brightness;
    for (const auto& how : augment)
      brightness.push_back(how.brightness);
    result = cropped(result, augment) * at::tensor(brightness, at::kFloat).to(device).view({-1, 1, 1, 1});
    result = result.clamp_max(255.0);
  }
  const auto per_channel = [&](const std::vector<float>& values) {
    return at::tensor(values, at::kFloat).to(device).view({1, -1, 1, 1});
  };
  result = result * per_channel(source.scale) + per_channel(source.shift);
  return padding.empty() ? result : result.index_fill_(0, index_tensor(padding, device), 0);
}

} // namespace mneme
