// synthetic: generated data for benchmarks and tests. Each class is a Gaussian distribution that depends only on the
// seed.
#include "runtime/base/check.hpp"
#include "runtime/base/new_tensor.hpp"
#include "runtime/data/data_sources.hpp"
#include "runtime/kernels/gaussian_pixels.hpp"
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <utility>
namespace mneme {
namespace {

// Shapes: N rows, C channels, H height, W width, D = C * H * W pixels.

constexpr std::int64_t test_rows_max = 1000;
constexpr double bytes_max = 1e12; // larger requests are probably typing errors

/// Kinds of random streams. The stream index is a class or a row, so a row does not depend on the number of rows.
enum class part : std::uint32_t { class_mean, train_row, test_row };
rng_key key_of(std::uint64_t seed, part kind, std::int64_t index) {
  return key_for({.seed = seed, .visit = static_cast<std::uint32_t>(kind), .index = static_cast<std::uint64_t>(index)},
                 purpose::synthetic_data);
}

/// Draws the class means: standard normal numbers, [classes, D].
std::vector<float> class_means(std::uint64_t seed, std::int64_t classes, std::int64_t pixels) {
  std::vector<float> means;
  means.reserve(static_cast<std::size_t>(classes * pixels));
  for (std::int64_t label = 0; label < classes; ++label) {
    rng_stream stream(key_of(seed, part::class_mean, label));
    for (std::int64_t pixel = 0; pixel < pixels; ++pixel)
      means.push_back(static_cast<float>(stream.normal()));
  }
  return means;
}

/// Converts a number to a pixel: 128 + 32 x, rounded and clamped to [0, 255].
std::uint8_t as_pixel(double x) {
  return static_cast<std::uint8_t>(std::clamp(std::floor(128.5 + 32.0 * x), 0.0, 255.0));
}

/// Draws one row: the mean of its class plus noise.
void make_row(std::span<std::uint8_t> pixels, const float* mean, const rng_key& key) {
  if (kernels::gaussian_pixels(pixels, mean, stream_name_of(key)))
    return;
  rng_stream noise(key); // a value is so close to a rounding boundary that the fast kernel could round it differently
  for (std::size_t i = 0; i < pixels.size(); ++i)
    pixels[i] = as_pixel(mean[i] + noise.normal());
}

image_table rows_of_part(std::uint64_t seed, part split, const std::vector<float>& means, std::int64_t rows,
                         std::int64_t classes, const std::array<std::int64_t, 3>& shape) {
  image_table table{.images = new_tensor({rows, shape[0], shape[1], shape[2]}, at::kByte)}; // [N, C, H, W]
  table.labels.reserve(static_cast<std::size_t>(rows));
  const auto pixels = static_cast<std::size_t>(shape[0] * shape[1] * shape[2]);
  auto* out = table.images.mutable_data_ptr<std::uint8_t>();
  for (std::int64_t row = 0; row < rows; ++row) {
    const auto label = row % classes;
    const float* mean = means.data() + static_cast<std::size_t>(label) * pixels;
    make_row({out + static_cast<std::size_t>(row) * pixels, pixels}, mean, key_of(seed, split, row));
    table.labels.push_back(static_cast<std::int32_t>(label));
  }
  return table;
}

/// Draws rows of tokens. Each token is the class's token for this position with probability 1/2, otherwise a random
/// token.
image_table made_tokens(std::uint64_t seed, part split, const data_section& data, std::int64_t rows) {
  const auto places = data.shape[0];
  image_table table{.images = new_tensor({rows, 1, 1, places}, at::kInt)}; // [N, 1, 1, T]
  auto* out = table.images.mutable_data_ptr<std::int32_t>();
  for (std::int64_t row = 0; row < rows; ++row) {
    const auto label = row % data.classes;
    rng_stream own(key_of(seed, part::class_mean, label)), draw(key_of(seed, split, row));
    for (std::int64_t place = 0; place < places; ++place) {
      const auto usual = own.below(static_cast<std::uint64_t>(data.tokens));
      const auto drawn = draw.below(2 * static_cast<std::uint64_t>(data.tokens));
      *out++ = static_cast<std::int32_t>(drawn < static_cast<std::uint64_t>(data.tokens) ? drawn : usual);
    }
    table.labels.push_back(static_cast<std::int32_t>(label));
  }
  return table;
}

/// Validates the keys of synthetic data.
diagnostics validate_keys(const data_section& data) {
  diagnostics errors;
  const auto& shape = data.shape;
  if ((shape.size() != 1 && shape.size() != 3) || std::any_of(shape.begin(), shape.end(), [](auto n) { return n < 1; }))
    errors.push_back(
        {"data.shape", fmt::format("found [{}]; expected [features] or [channels, height, width], each at least 1",
                                   fmt::join(shape, ", "))});
  if (data.tokens > 0 && shape.size() != 1)
    errors.push_back({"data.shape", fmt::format("found [{}]; expected [tokens of a row]", fmt::join(shape, ", "))});
  if (data.classes < 1)
    errors.push_back({"data.classes", fmt::format("found {}; expected at least 1", data.classes)});
  if (data.rows < 1)
    errors.push_back({"data.rows", fmt::format("found {}; expected at least 1", data.rows)});
  if (!errors.empty())
    return errors;
  auto bytes = static_cast<double>(std::max(data.rows, 4 * data.classes)); // the class means are float32
  if (data.tokens > 0)
    bytes *= sizeof(std::int32_t);
  for (const auto n : shape)
    bytes *= static_cast<double>(n);
  if (bytes > bytes_max)
    errors.push_back(
        {"data.rows", fmt::format("{} rows of shape [{}] take {:.3g} bytes, more than {:.3g}; expected fewer",
                                  data.rows, fmt::join(shape, ", "), bytes, bytes_max)});
  return errors;
}

std::array<std::int64_t, 3> shape_of(const data_section& data) {
  return data.shape.size() == 3 ? std::array{data.shape[0], data.shape[1], data.shape[2]}
                                : std::array<std::int64_t, 3>{1, 1, data.shape[0]};
}

/// Makes raw_data from both splits and from the properties that the keys define.
raw_data described(const data_section& data, image_table train, image_table test) {
  const bool is_tokens = data.tokens > 0;
  const auto channels = is_tokens ? 1 : static_cast<std::size_t>(shape_of(data)[0]);
  return {.name = "synthetic",
          .train = std::move(train),
          .test = std::move(test),
          .classes = data.classes,
          .tokens = data.tokens,
          .mean = std::vector<double>(channels, is_tokens ? 0.0 : 0.5),
          .deviation = std::vector<double>(channels, is_tokens ? 1.0 : 0.5)};
}

expected<raw_data> load_synthetic(const data_section& data, std::uint64_t seed) {
  if (auto errors = validate_keys(data); !errors.empty())
    return tl::unexpected(errors);
  const auto shape = shape_of(data);
  const auto test_rows = std::min(test_rows_max, data.rows);
  if (data.tokens > 0)
    return described(data, made_tokens(seed, part::train_row, data, data.rows),
                     made_tokens(seed, part::test_row, data, test_rows));
  const auto means = class_means(seed, data.classes, shape[0] * shape[1] * shape[2]);
  return described(data, rows_of_part(seed, part::train_row, means, data.rows, data.classes, shape),
                   rows_of_part(seed, part::test_row, means, test_rows, data.classes, shape));
}

image_table zeros_of(const data_section& data, std::int64_t rows) {
  const auto shape = shape_of(data);
  image_table table{.images = new_tensor({rows, shape[0], shape[1], shape[2]}, data.tokens > 0 ? at::kInt : at::kByte)};
  std::memset(table.images.mutable_data_ptr(), 0, table.images.nbytes());
  for (std::int64_t row = 0; row < rows; ++row)
    table.labels.push_back(static_cast<std::int32_t>(row % data.classes));
  return table;
}

expected<raw_data> zeros_for_synthetic(const data_section& data) {
  if (auto errors = validate_keys(data); !errors.empty())
    return tl::unexpected(errors);
  return described(data, zeros_of(data, data.rows), zeros_of(data, std::min(test_rows_max, data.rows)));
}

const source_registration synthetic_line{
    {.name = "synthetic",
     .summary = "data.rows generated rows of data.shape, one Gaussian distribution per class (data.classes), from the "
                "seed alone",
     .load = [](const data_section& data, const auto&, std::uint64_t seed) { return load_synthetic(data, seed); },
     .load_zeros = zeros_for_synthetic,
     .from_seed = true}};

} // namespace
} // namespace mneme
