#include "runtime/training/gather_calls.hpp"
#include "runtime/base/check.hpp"
#include <ATen/ops/empty.h>
#include <cstring>
#include <limits>
namespace mneme {
namespace {

using namespace kernels::cuda;

/// Copies values to a device as bytes. An empty vector becomes one byte, so that the tensor has an address.
template <class Value>
at::Tensor bytes_on(const at::Device& device, const std::vector<Value>& values) {
  static_assert(std::is_trivially_copyable_v<Value>);
  const auto size = static_cast<std::int64_t>(values.size() * sizeof(Value));
  auto host = at::empty({std::max<std::int64_t>(size, 1)}, at::kByte);
  if (size > 0)
    std::memcpy(host.mutable_data_ptr(), values.data(), static_cast<std::size_t>(size));
  return host.to(device);
}

/// Checks that row numbers and pixel indices fit the kernel's 32 bits, and that scale and shift match the channels.
void check_sizes(const dataset& source) {
  const auto shape = source.shape();
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  MNEME_CHECK(source.files_rows() <= most && shape[0] * shape[1] * shape[2] <= most - 4, source.files_rows(), shape[0],
              shape[1], shape[2]);
  MNEME_CHECK(std::ssize(source.scale) == shape[0] && std::ssize(source.shift) == shape[0] &&
                  source.images.is_contiguous(),
              source.scale.size(), source.shift.size(), shape[0]);
}

} // namespace

gather_tables tables_on(const at::Device& device, const dataset& source) {
  check_sizes(source);
  const auto shape = source.shape();
  const auto plane = shape[1] * shape[2], total = shape[0] * plane;
  std::vector<tap_table> transforms;
  std::vector<pixel_taps> taps;
  for (const auto& map : source.transforms) {
    const auto targets = std::ssize(map.pixels);
    MNEME_CHECK(targets == 0 || targets == (map.across_channels ? total : plane), targets, total, plane);
    transforms.push_back(
        {.first = std::ssize(taps), .targets = static_cast<std::int32_t>(targets), .invert = map.invert ? 1 : 0});
    for (const auto& from : map.pixels) {
      auto& to = taps.emplace_back();
      std::copy(from.from.begin(), from.from.end(), to.from);
      std::copy(from.weight.begin(), from.weight.end(), to.weight);
    }
  }
  auto scales = source.scale;
  scales.insert(scales.end(), source.shift.begin(), source.shift.end());
  return {.images = source.images.to(device),
          .transforms = bytes_on(device, transforms),
          .taps = bytes_on(device, taps),
          .scales = bytes_on(device, scales).view(at::kFloat).view({2, shape[0]})};
}

at::Tensor packed_rows(const dataset& source, std::span<const std::int64_t> rows, std::span<const augmentation> augment,
                       bool pinned) {
  MNEME_CHECK(augment.empty() || augment.size() == rows.size(), augment.size(), rows.size());
  const auto files = source.files_rows();
  auto packed = at::empty({std::ssize(rows) * static_cast<std::int64_t>(sizeof(gather_row))},
                          at::TensorOptions(at::kByte).pinned_memory(pinned));
  auto* to = static_cast<gather_row*>(packed.mutable_data_ptr());
  for (std::size_t i = 0; i < rows.size(); ++i, ++to) {
    const auto row = rows[i];
    const auto how = augment.empty() ? augmentation{} : augment[i];
    if (row == padding_row) {
      *to = {.file_row = -1};
      continue;
    }
    MNEME_CHECK(0 <= row && row < files * std::ssize(source.transforms), row, files, source.transforms.size());
    MNEME_CHECK(!how.part && !source.shown.changes(), row); // rows with crops or resizing are gathered on the host
    *to = {.file_row = static_cast<std::int32_t>(row % files),
           .transform = static_cast<std::int32_t>(row / files),
           .brightness = how.brightness,
           .down = static_cast<std::int8_t>(how.down),
           .right = static_cast<std::int8_t>(how.right),
           .flip = static_cast<std::uint8_t>(how.flip ? 1 : 0)};
  }
  return packed;
}

gathered_rows gather_call(const dataset& source, const gather_tables& tables, const at::Tensor& rows, at::Tensor& out) {
  const auto shape = source.shape();
  const auto count = rows.numel() / static_cast<std::int64_t>(sizeof(gather_row));
  const auto pixels = shape[0] * shape[1] * shape[2];
  MNEME_CHECK(out.is_contiguous() && out.numel() == count * pixels, out.sizes(), count, pixels);
  gathered_rows call{.images = tables.images.const_data_ptr<std::uint8_t>(),
                     .rows = static_cast<const gather_row*>(rows.const_data_ptr()),
                     .transforms = static_cast<const tap_table*>(tables.transforms.const_data_ptr()),
                     .taps = static_cast<const pixel_taps*>(tables.taps.const_data_ptr()),
                     .scale = tables.scales.const_data_ptr<float>(),
                     .shift = tables.scales.const_data_ptr<float>() + shape[0],
                     .out = out.mutable_data_ptr<float>(),
                     .channels = static_cast<std::int32_t>(shape[0]),
                     .height = static_cast<std::int32_t>(shape[1]),
                     .width = static_cast<std::int32_t>(shape[2]),
                     .count = count};
  call.quads =
      pixels % 4 == 0 && is_aligned(call.images, sizeof(four_bytes)) && is_aligned(call.out, sizeof(four_floats));
  return call;
}

} // namespace mneme
