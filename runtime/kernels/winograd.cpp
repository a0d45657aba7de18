#include "runtime/kernels/winograd.hpp"
#include "runtime/kernels/tiles.hpp"
#include "runtime/kernels/transpose.hpp"
#include <algorithm>
#include <bit>
#include <type_traits>
namespace mneme::kernels {
namespace {

// F(2 x 2, 3 x 3) of Lavin and Gray 2016, "Fast Algorithms for Convolutional Neural Networks", section 4.1.
// d is the block of 4 x 4 pixels that 2 x 2 results read, g a filter, and * the elementwise product:
//   y = A^T [(G g G^T) * (B^T d B)] A,  which has 16 products per channel instead of 36.
// Each of the 16 places of a product is an independent matrix product over channels. The adjoint gives the gradient of
// the filters:
//   dg = G^T [sum over squares of (B^T d B) * (A dy A^T)] G. Sums have more terms than in a direct convolution, so the
//   error is about twice as large.

constexpr int places = 16;

/// The squares of 2 x 2 results in all images, numbered row by row.
struct square_grid {
  std::int64_t rows = 0, height = 0, width = 0; // number of images, and size of the result images in pixels
  [[nodiscard]] std::int64_t down() const { return (height + 1) / 2; }
  [[nodiscard]] std::int64_t along() const { return (width + 1) / 2; }
  [[nodiscard]] std::int64_t squares() const { return rows * down() * along(); }
};

/// Input images [rows, height, width, channels]; padding in pixels.
struct source_images {
  const float* pixels = nullptr;
  std::int64_t height = 0, width = 0, channels = 0, padding = 0;
};

struct workspace {
  float *read, *made, *filters; // transformed pixels, products and filters
};

/// Number of squares per block. The transformed pixels and products of a block fit into the second-level cache.
std::int64_t block_squares(std::int64_t stride, std::int64_t n) {
  constexpr std::int64_t cache_floats = std::int64_t{1} << 17U; // 512 KiB
  return std::clamp<std::int64_t>(cache_floats / (places * (stride + n)) / 12 * 12, 12, 96);
}

/// Row stride of transformed pixels in floats. It is a compile-time constant and not a power of two.
template <std::int64_t Channels>
constexpr std::int64_t row_stride = Channels + 16;
/// Calls `act` with the smallest row stride for `channels`, as a std::integral_constant.
template <class Act>
MNEME_INLINE void with_row_stride(std::int64_t channels, Act act) {
  if (channels <= 32)
    act(std::integral_constant<std::int64_t, row_stride<32>>{});
  else if (channels <= 64)
    act(std::integral_constant<std::int64_t, row_stride<64>>{});
  else if (channels <= 128)
    act(std::integral_constant<std::int64_t, row_stride<128>>{});
  else if (channels <= 256)
    act(std::integral_constant<std::int64_t, row_stride<256>>{});
  else
    act(std::integral_constant<std::int64_t, row_stride<512>>{});
}

template <int Lanes>
using vec = typename floats<Lanes>::type;

/// d = B^T d B, in place.
template <int Lanes>
MNEME_INLINE void transform_pixels(vec<Lanes> (&d)[places]) {
  for (int column = 0; column < 4; ++column) {
    const vec<Lanes> a = d[column], b = d[4 + column], c = d[8 + column], e = d[12 + column];
    d[column] = a - c, d[4 + column] = b + c, d[8 + column] = c - b, d[12 + column] = b - e;
  }
  for (int row = 0; row < places; row += 4) {
    const vec<Lanes> a = d[row], b = d[row + 1], c = d[row + 2], e = d[row + 3];
    d[row] = a - c, d[row + 1] = b + c, d[row + 2] = c - b, d[row + 3] = b - e;
  }
}

/// Finds the 16 pixels that square `number` reads. Pixels outside the image are `nothing`.
MNEME_INLINE void pixels_of(const source_images& in, const square_grid& grid, std::int64_t number, const float* nothing,
                            const float* (&pixels)[places]) {
  const std::int64_t x = number % grid.along() * 2 - in.padding;
  const std::int64_t y = number / grid.along() % grid.down() * 2 - in.padding;
  const std::int64_t image = number / (grid.along() * grid.down());
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 4; ++j) {
      const bool inside = y + i >= 0 && y + i < in.height && x + j >= 0 && x + j < in.width;
      pixels[4 * i + j] = inside ? in.pixels + ((image * in.height + y + i) * in.width + x + j) * in.channels : nothing;
    }
}

/// Transforms the pixels of squares first .. first + count - 1 into read [places, block, stride].
template <int Lanes>
MNEME_INLINE void read_squares(const source_images& in, const square_grid& grid, std::int64_t first, std::int64_t count,
                               std::int64_t block, std::int64_t stride, const float* nothing, float* read) {
  for (std::int64_t s = 0; s < count; ++s) {
    const float* pixels[places];
    pixels_of(in, grid, first + s, nothing, pixels);
    for (std::int64_t c = 0; c < in.channels; c += Lanes) {
      vec<Lanes> d[places];
      for (int i = 0; i < places; ++i)
        load(d[i], pixels[i] + c);
      transform_pixels<Lanes>(d);
      for (int i = 0; i < places; ++i)
        store(read + (i * block + s) * stride + c, d[i]);
    }
  }
}

/// Transforms filters w [3, 3, channels, n] to G g G^T, as panels [places, n / width, channels, width]. The last panel
/// may be narrower.
template <int Lanes>
MNEME_INLINE void transform_filters(const float* w, std::int64_t channels, std::int64_t n, float* out) {
  for (std::int64_t c = 0; c < channels; ++c)
    for (std::int64_t f = 0; f < n; f += Lanes) {
      vec<Lanes> g[9], half[12];
      for (int tap = 0; tap < 9; ++tap)
        load(g[tap], w + (tap * channels + c) * n + f);
      for (int j = 0; j < 3; ++j) {
        const vec<Lanes> outer = g[j] + g[6 + j];
        half[j] = g[j], half[9 + j] = g[6 + j];
        half[3 + j] = 0.5F * (outer + g[3 + j]), half[6 + j] = 0.5F * (outer - g[3 + j]);
      }
      const std::int64_t panel = f / (2 * Lanes) * (2 * Lanes), width = n - panel < 2 * Lanes ? n - panel : 2 * Lanes;
      float* to = out + panel * channels + c * width + f - panel;
      for (int i = 0; i < 4; ++i, to += 4 * channels * n) {
        const vec<Lanes> outer = half[3 * i] + half[3 * i + 2];
        store(to, half[3 * i]);
        store(to + channels * n, 0.5F * (outer + half[3 * i + 1]));
        store(to + 2 * channels * n, 0.5F * (outer - half[3 * i + 1]));
        store(to + 3 * channels * n, half[3 * i + 2]);
      }
    }
}

/// Multiplies rows i .. count - 1 of read [count, Stride] by the panels of one place, into products [count, n].
template <int Lanes, int Rows, std::int64_t Stride>
MNEME_INLINE void rows_times(const float* read, const float* panels, std::int64_t channels, std::int64_t n,
                             float* products, std::int64_t i, std::int64_t count) {
  for (; i + Rows <= count; i += Rows) {
    std::int64_t j = 0;
    for (; j + 2 * Lanes <= n; j += 2 * Lanes)
      whole_tile<Lanes, 2, Rows, false, Stride, false>(read + i * Stride, panels + j * channels, channels,
                                                       products + i * n + j, n);
    if (j < n)
      whole_tile<Lanes, 1, Rows, false, Stride, false>(read + i * Stride, panels + j * channels, channels,
                                                       products + i * n + j, n);
  }
  if constexpr (Rows > 1)
    if (i < count)
      rows_times<Lanes, fewer_rows(Rows), Stride>(read, panels, channels, n, products, i, count);
}

/// Result images [rows, height, width, n]. `bias` [n] may be null; `add` adds to `pixels`.
struct target_images {
  float* pixels = nullptr;
  std::int64_t n = 0;
  const float* bias = nullptr;
  bool relu = false, add = false;
};

/// Writes A^T m A of square `number`, for all n columns.
template <int Lanes>
MNEME_INLINE void write_square(const target_images& out, const square_grid& grid, std::int64_t number,
                               const float* products, std::int64_t place_floats) {
  const std::int64_t x = number % grid.along() * 2, y = number / grid.along() % grid.down() * 2;
  const std::int64_t image = number / (grid.along() * grid.down());
  float* const corner = out.pixels + ((image * grid.height + y) * grid.width + x) * out.n;
  const bool right = x + 1 < grid.width, below = y + 1 < grid.height;
  for (std::int64_t f = 0; f < out.n; f += Lanes) {
    vec<Lanes> m[places], half[8], result[4];
    for (int i = 0; i < places; ++i)
      load(m[i], products + i * place_floats + f);
    for (int j = 0; j < 4; ++j)
      half[j] = m[j] + m[4 + j] + m[8 + j], half[4 + j] = m[4 + j] - m[8 + j] - m[12 + j];
    for (int i = 0; i < 2; ++i) {
      const vec<Lanes>* const h = half + 4 * i;
      result[2 * i] = h[0] + h[1] + h[2], result[2 * i + 1] = h[1] - h[2] - h[3];
    }
    vec<Lanes> bias = {};
    if (out.bias)
      load(bias, out.bias + f);
    for (int i = 0; i < 4; ++i) {
      if ((i % 2 && !right) || (i / 2 && !below))
        continue;
      float* const to = corner + (i / 2 * grid.width + i % 2) * out.n + f;
      vec<Lanes> value = result[i] + bias, before;
      if (out.add)
        load(before, to), value += before;
      if (out.relu)
        value = value <= 0.0F ? vec<Lanes>{} : value; // this comparison keeps NaN
      store(to, value);
    }
  }
}

struct winograd_product {
  source_images in{};
  square_grid grid{};
  const float* w = nullptr; // [3, 3, channels, n]
  target_images out{};
  const float* nothing = nullptr; // points to zeros for all channels of a pixel
};

template <class Set, std::int64_t Stride>
MNEME_INLINE void product_of(const winograd_product& product, const workspace& space) {
  constexpr int lanes = Set::lanes;
  const std::int64_t channels = product.in.channels, n = product.out.n, block = block_squares(Stride, n);
  transform_filters<lanes>(product.w, channels, n, space.filters);
  for (std::int64_t first = 0; first < product.grid.squares(); first += block) {
    const std::int64_t count = product.grid.squares() - first < block ? product.grid.squares() - first : block;
    read_squares<lanes>(product.in, product.grid, first, count, block, Stride, product.nothing, space.read);
    for (int place = 0; place < places; ++place)
      rows_times<lanes, tile_rows<Set>, Stride>(space.read + place * block * Stride,
                                                space.filters + place * channels * n, channels, n,
                                                space.made + place * block * n, 0, count);
    for (std::int64_t s = 0; s < count; ++s)
      write_square<lanes>(product.out, product.grid, first + s, space.made + s * n, block * n);
  }
}

template <class Set>
MNEME_INLINE void winograd_times_body(const winograd_product& product, const workspace& space) {
  with_row_stride(
      product.in.channels, [&](auto stride) __attribute__((always_inline)) {
        product_of<Set, decltype(stride)::value>(product, space);
      });
}

// -- gradient of the filters ------------------------------------------------------------------------------------------

/// Transforms the gradients of squares to A dy A^T, as panels [places, n / width, block, width].
template <int Lanes>
MNEME_INLINE void spread_squares(const square_grid& grid, const float* dy, std::int64_t n, std::int64_t first,
                                 std::int64_t count, std::int64_t block, float* products) {
  for (std::int64_t s = 0; s < count; ++s) {
    const std::int64_t number = first + s;
    const std::int64_t x = number % grid.along() * 2, y = number / grid.along() % grid.down() * 2;
    const std::int64_t image = number / (grid.along() * grid.down());
    const float* const corner = dy + ((image * grid.height + y) * grid.width + x) * n;
    const bool right = x + 1 < grid.width, below = y + 1 < grid.height;
    for (std::int64_t f = 0; f < n; f += Lanes) {
      vec<Lanes> d[4] = {}, half[8];
      load(d[0], corner + f);
      if (right)
        load(d[1], corner + n + f);
      if (below)
        load(d[2], corner + grid.width * n + f);
      if (right && below)
        load(d[3], corner + (grid.width + 1) * n + f);
      for (int j = 0; j < 2; ++j)
        half[j] = d[j], half[2 + j] = d[j] + d[2 + j], half[4 + j] = d[j] - d[2 + j], half[6 + j] = -d[2 + j];
      const std::int64_t panel = f / (2 * Lanes) * (2 * Lanes), width = n - panel < 2 * Lanes ? n - panel : 2 * Lanes;
      float* to = products + panel * block + s * width + f - panel;
      for (int i = 0; i < 4; ++i, to += 4 * block * n) {
        const vec<Lanes> a = half[2 * i], b = half[2 * i + 1];
        store(to, a);
        store(to + block * n, a + b);
        store(to + 2 * block * n, a - b);
        store(to + 3 * block * n, -b);
      }
    }
  }
}

/// sums [channels, n] = read^T [channels, count] times the panels [count, n] of one place. With `Add`, the product is
/// added to sums.
template <int Lanes, int Rows, std::int64_t Stride, bool Add>
MNEME_INLINE void columns_times(const float* read, const float* panels, std::int64_t block, std::int64_t count,
                                std::int64_t channels, std::int64_t n, float* sums) {
  std::int64_t j = 0;
  for (; j + 2 * Lanes <= n; j += 2 * Lanes)
    for (std::int64_t i = 0; i < channels; i += Rows) // channels are a multiple of 16
      whole_tile<Lanes, 2, Rows, true, Stride, Add>(read + i, panels + j * block, count, sums + i * n + j, n);
  for (std::int64_t i = 0; i < channels && j < n; i += Rows)
    whole_tile<Lanes, 1, Rows, true, Stride, Add>(read + i, panels + j * block, count, sums + i * n + j, n);
}

struct winograd_correlation {
  source_images in{};
  square_grid grid{};
  const float* dy = nullptr;
  float* dw = nullptr; // [3, 3, channels, n]
  std::int64_t n = 0;
  float scale = 1.0F;
  bool add = false;
  const float* nothing = nullptr;
};

/// dw = scale * G^T sums G. If correlation.add is set, it is added to dw.
template <int Lanes>
MNEME_INLINE void write_filters(const winograd_correlation& correlation, const float* sums) {
  const std::int64_t floats_of_place = correlation.in.channels * correlation.n;
  for (std::int64_t at = 0; at < floats_of_place; at += Lanes) {
    vec<Lanes> u[places], half[12];
    for (int i = 0; i < places; ++i)
      load(u[i], sums + i * floats_of_place + at);
    for (int j = 0; j < 4; ++j) {
      const vec<Lanes> sum = 0.5F * (u[4 + j] + u[8 + j]);
      half[j] = u[j] + sum, half[8 + j] = u[12 + j] + sum;
      half[4 + j] = 0.5F * (u[4 + j] - u[8 + j]);
    }
    for (int i = 0; i < 3; ++i) {
      const vec<Lanes>* const h = half + 4 * i;
      const vec<Lanes> sum = 0.5F * (h[1] + h[2]);
      const vec<Lanes> taps[3] = {h[0] + sum, 0.5F * (h[1] - h[2]), h[3] + sum};
      for (int j = 0; j < 3; ++j) {
        float* const to = correlation.dw + (3 * i + j) * floats_of_place + at;
        vec<Lanes> value = correlation.scale * taps[j], before;
        if (correlation.add)
          load(before, to), value += before;
        store(to, value);
      }
    }
  }
}

template <class Set, std::int64_t Stride>
MNEME_INLINE void correlation_of(const winograd_correlation& correlation, const workspace& space) {
  constexpr int lanes = Set::lanes, rows = Set::accumulators == 16 ? 8 : 4;
  const std::int64_t channels = correlation.in.channels, block = block_squares(Stride, correlation.n);
  for (std::int64_t first = 0; first < correlation.grid.squares(); first += block) {
    const std::int64_t count = correlation.grid.squares() - first < block ? correlation.grid.squares() - first : block;
    read_squares<lanes>(correlation.in, correlation.grid, first, count, block, Stride, correlation.nothing, space.read);
    spread_squares<lanes>(correlation.grid, correlation.dy, correlation.n, first, count, block, space.made);
    for (int place = 0; place < places; ++place) {
      const float* const read = space.read + place * block * Stride;
      const float* const products = space.made + place * block * correlation.n;
      float* const sums = space.filters + place * channels * correlation.n;
      if (first == 0)
        columns_times<lanes, rows, Stride, false>(read, products, block, count, channels, correlation.n, sums);
      else
        columns_times<lanes, rows, Stride, true>(read, products, block, count, channels, correlation.n, sums);
    }
  }
  write_filters<lanes>(correlation, space.filters);
}

template <class Set>
MNEME_INLINE void winograd_across_body(const winograd_correlation& correlation, const workspace& space) {
  with_row_stride(
      correlation.in.channels, [&](auto stride) __attribute__((always_inline)) {
        correlation_of<Set, decltype(stride)::value>(correlation, space);
      });
}

MNEME_KERNEL(winograd_times, (const winograd_product& product, const workspace& space), (product, space))
MNEME_KERNEL(winograd_across, (const winograd_correlation& correlation, const workspace& space), (correlation, space))

workspace workspace_for(std::int64_t channels, std::int64_t n, scratch& memory) {
  const auto rounded = std::bit_ceil(static_cast<std::uint64_t>(std::max<std::int64_t>(channels, 32)));
  const auto stride = static_cast<std::int64_t>(rounded) + 16; // equals row_stride
  const auto block = block_squares(stride, n);
  return {.read = memory.take(0, places * block * stride),
          .made = memory.take(1, places * block * n),
          .filters = memory.take(2, places * channels * n)};
}

/// Returns a pixel of zeros.
const float* black(std::int64_t channels, scratch& memory) {
  float* const pixel = memory.take(4, channels);
  std::fill_n(pixel, channels, 0.0F);
  return pixel;
}

/// Filters for the gradient of the input: rotated by 180 degrees, with channels and filters exchanged.
void turn(const conv_shape& shape, const float* w, float* turned) {
  const std::int64_t tap_floats = shape.channels * shape.filters;
  for (std::int64_t tap = 0; tap < 9; ++tap)
    transpose(w + (8 - tap) * tap_floats, shape.channels, shape.filters, turned + tap * tap_floats);
}

} // namespace

bool winograd_pays(const conv_shape& shape) {
  constexpr std::int64_t channels_max = 512;
  constexpr std::int64_t pixels_min = 16;
  const auto fits = [](std::int64_t channels) { return channels % 16 == 0 && channels <= channels_max; };
  return shape.kernel == 3 && shape.stride == 1 && shape.padding <= 2 && fits(shape.channels) && fits(shape.filters) &&
         shape.out_height() * shape.out_width() >= pixels_min;
}

void winograd_convolve(const conv_shape& shape, const float* x, const float* w, const float* bias, bool relu, float* y,
                       scratch& memory) {
  const auto space = workspace_for(shape.channels, shape.filters, memory);
  best_winograd_times({.in = {x, shape.height, shape.width, shape.channels, shape.padding},
                       .grid = {shape.rows, shape.out_height(), shape.out_width()},
                       .w = w,
                       .out = {.pixels = y, .n = shape.filters, .bias = bias, .relu = relu},
                       .nothing = black(shape.channels, memory)},
                      space);
}

void winograd_convolve_back(const conv_shape& shape, const float* dy, const float* w, float* dx, bool add,
                            scratch& memory) {
  const auto space = workspace_for(shape.filters, shape.channels, memory);
  float* const turned = memory.take(3, shape.terms() * shape.filters);
  turn(shape, w, turned);
  best_winograd_times({.in = {dy, shape.out_height(), shape.out_width(), shape.filters, 2 - shape.padding},
                       .grid = {shape.rows, shape.height, shape.width},
                       .w = turned,
                       .out = {.pixels = dx, .n = shape.channels, .add = add},
                       .nothing = black(shape.filters, memory)},
                      space);
}

void winograd_correlate(const conv_shape& shape, const float* x, const float* dy, float* dw, float scale, bool add,
                        scratch& memory) {
  const auto space = workspace_for(shape.channels, shape.filters, memory);
  best_winograd_across({.in = {x, shape.height, shape.width, shape.channels, shape.padding},
                        .grid = {shape.rows, shape.out_height(), shape.out_width()},
                        .dy = dy,
                        .dw = dw,
                        .n = shape.filters,
                        .scale = scale,
                        .add = add,
                        .nothing = black(shape.channels, memory)},
                       space);
}

} // namespace mneme::kernels
