#include "runtime/kernels/convolution.hpp"
#include "runtime/base/ceil_div.hpp"
#include "runtime/kernels/tiles.hpp"
#include "runtime/kernels/transpose.hpp"
#include "runtime/kernels/winograd.hpp"
#include <algorithm>
namespace mneme::kernels {
namespace {

// Every convolution here is a product C = A B, where a row of A is the patch of pixels that one pixel of the result
// reads. Patches of a block are copied together (a few KB to a MB, in the second-level cache), a panel of B as well
// (first-level), and tiles of C are summed in registers (Goto and van de Geijn 2008, "Anatomy of High-Performance
// Matrix Multiplication").

constexpr std::int64_t patches_max = 192;             // rows of A in a block: whole tiles
constexpr std::int64_t terms_max = 288;               // terms of a block: 9 taps of 32 channels
constexpr std::int64_t patch_floats = terms_max + 16; // between packed patches: not a power of two
constexpr int vector_floats = 16;
constexpr int runs_max = 16; // rows of taps in a block, and one: kernels are at most 15 pixels high

/// Which pixels a grid of results reads: result (y, x) reads the rectangle of taps at
/// (y * step + from_y + 0 .. taps_y - 1, x * step + from_x + 0 .. taps_x - 1) of its image; zeros outside.
struct patch_grid {
  const float* source = nullptr; // [rows, height, width, channels]
  std::int64_t height = 0, width = 0, channels = 0;
  std::int64_t rows = 0, grid_height = 0, grid_width = 0;
  std::int64_t step = 1, from_y = 0, from_x = 0, taps_y = 0, taps_x = 0;
  [[nodiscard]] std::int64_t patches() const { return rows * grid_height * grid_width; }
  /// Taps of one row and their channels lie side by side in an image: one run of memory.
  [[nodiscard]] std::int64_t run_floats() const { return taps_x * channels; }
  [[nodiscard]] std::int64_t terms() const { return taps_y * run_floats(); }
};

/// Where the results of a grid go: its pixel (y, x) is pixel (y * step + from_y, x * step + from_x) of C.
struct grid_target {
  float* c = nullptr; // [rows, height, width, n]
  std::int64_t height = 0, width = 0, n = 0;
  std::int64_t step = 1, from_y = 0, from_x = 0;
};

/// Copies at least n floats, in whole vectors: what lies behind is written again, or never read.
MNEME_INLINE void copy_vectors(float* __restrict to, const float* __restrict from, std::int64_t n) {
  typename floats<vector_floats>::type chunk;
  for (std::int64_t i = 0; i < n; i += vector_floats) {
    load(chunk, from + i);
    store(to + i, chunk);
  }
}

MNEME_INLINE void clear_floats(float* to, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i)
    to[i] = 0.0F;
}

/// Copies floats `first` .. first + n - 1 of an image's row, zeros where the row (of `row_floats`) ends.
MNEME_INLINE void copy_clipped(float* __restrict to, const float* __restrict row, std::int64_t row_floats,
                               std::int64_t first, std::int64_t n) {
  const std::int64_t low = first < 0 ? (-first < n ? -first : n) : 0;
  const std::int64_t high = first + n > row_floats ? (row_floats > first ? row_floats - first : 0) : n;
  clear_floats(to, low);
  for (std::int64_t i = low; i < high; ++i)
    to[i] = row[first + i];
  const std::int64_t end = high > low ? high : low;
  clear_floats(to + end, n - end);
}

/// A part of a patch whose floats lie side by side, in an image's row and in the packed patch.
struct patch_run {
  std::int64_t tap_y = 0, first = 0, length = 0, to = 0;
};

/// Cuts terms term .. term + n - 1 into runs; returns their number.
MNEME_INLINE int runs_of(const patch_grid& in, std::int64_t term, std::int64_t n, patch_run* runs) {
  int count = 0;
  for (std::int64_t at = term; at < term + n; ++count) {
    const std::int64_t within = at % in.run_floats(), rest = in.run_floats() - within;
    runs[count] = {at / in.run_floats(), within, rest < term + n - at ? rest : term + n - at, at - term};
    at += runs[count].length;
  }
  return count;
}

/// Terms term .. term + n - 1 of patches patch .. patch + count - 1, to `packed` [count, patch_floats].
MNEME_INLINE void pack_patches(const patch_grid& in, std::int64_t patch, std::int64_t count, std::int64_t term,
                               std::int64_t n, float* packed) {
  patch_run runs[runs_max];
  const int run_count = runs_of(in, term, n, runs);
  const std::int64_t row_floats = in.width * in.channels;
  const std::int64_t last_whole =
      in.rows * in.height * row_floats - vector_floats; // no vector is read beyond the images
  std::int64_t x = patch % in.grid_width, y = patch / in.grid_width % in.grid_height;
  std::int64_t image = patch / (in.grid_width * in.grid_height);
  for (std::int64_t i = 0; i < count; ++i, packed += patch_floats) {
    const std::int64_t column = (x * in.step + in.from_x) * in.channels;
    const bool inside = column >= 0 && column + in.run_floats() <= row_floats;
    for (int r = 0; r < run_count; ++r) {
      const std::int64_t source_y = y * in.step + in.from_y + runs[r].tap_y;
      const std::int64_t row = (image * in.height + source_y) * row_floats, first = column + runs[r].first;
      if (source_y < 0 || source_y >= in.height)
        clear_floats(packed + runs[r].to, runs[r].length);
      else if (inside && row + first + runs[r].length <= last_whole)
        copy_vectors(packed + runs[r].to, in.source + row + first, runs[r].length);
      else
        copy_clipped(packed + runs[r].to, in.source + row, row_floats, first, runs[r].length);
    }
    if (++x == in.grid_width) {
      x = 0;
      if (++y == in.grid_height)
        y = 0, ++image;
    }
  }
}

/// Parts of a call's memory.
struct workspace {
  float *packed, *panels;
};

/// The length of blocks that cut `all` evenly, none longer than `longest`.
MNEME_INLINE std::int64_t even_blocks(std::int64_t total, std::int64_t longest) {
  const std::int64_t count = ceil_div(total, longest);
  return count == 0 ? 0 : ceil_div(total, count);
}

struct patch_product {
  patch_grid in{};
  const float* b = nullptr; // [terms, n]
  grid_target out{};
  bool add = false;
  const float* bias = nullptr; // [n]
  bool relu = false;
};

/// b [terms, n] in panels of two vectors of columns, the last one of one vector if that is enough.
template <class Set>
MNEME_INLINE void pack_panels(const float* b, std::int64_t terms, std::int64_t n, float* panels) {
  constexpr int lanes = Set::lanes;
  for (std::int64_t j = 0; j < n; j += 2 * lanes, panels += terms * 2 * lanes)
    if (n - j > lanes)
      pack_panel<2 * lanes>(b, terms, n, j, panels);
    else
      pack_panel<lanes>(b, terms, n, j, panels);
}

/// Rows of packed A against all panels, into rows of C that lie anywhere: whole vectors where all columns exist.
template <class Set, int Rows, bool Across>
MNEME_INLINE void scattered_band(const float* packed, const float* panels, std::int64_t terms, std::int64_t n,
                                 float* const* c, bool add, float scale = 1.0F) {
  constexpr int lanes = Set::lanes;
  float* at[Rows];
  for (std::int64_t j = 0; j < n; j += 2 * lanes) {
    for (int r = 0; r < Rows; ++r)
      at[r] = c[r] + j;
    const std::int64_t columns = n - j < 2 * lanes ? n - j : 2 * lanes;
    if (columns > lanes)
      partial_tile<lanes, 2, Rows, Across, patch_floats>(packed, panels + j * terms, terms, at, columns, add, scale);
    else
      partial_tile<lanes, 1, Rows, Across, patch_floats>(packed, panels + j * terms, terms, at, columns, add, scale);
  }
}

/// The same where rows of C lie side by side.
template <class Set, int Rows, bool Across, bool Add>
MNEME_INLINE void dense_band(const float* packed, const float* panels, std::int64_t terms, std::int64_t n, float* c,
                             float scale = 1.0F) {
  constexpr int lanes = Set::lanes;
  std::int64_t j = 0;
  for (; j + 2 * lanes <= n; j += 2 * lanes)
    whole_tile<lanes, 2, Rows, Across, patch_floats, Add>(packed, panels + j * terms, terms, c + j, n, scale);
  if (j + lanes == n)
    return whole_tile<lanes, 1, Rows, Across, patch_floats, Add>(packed, panels + j * terms, terms, c + j, n, scale);
  if (j == n)
    return;
  float* at[Rows];
  for (int r = 0; r < Rows; ++r)
    at[r] = c + r * n + j;
  scattered_band<Set, Rows, Across>(packed, panels + j * terms, terms, n - j, at, Add, scale);
}

/// Adds the bias to finished rows [rows, n], then ReLU.
MNEME_INLINE void finish_rows(float* c, std::int64_t rows, std::int64_t n, const float* __restrict bias, bool relu) {
  for (std::int64_t r = 0; r < rows; ++r, c += n)
    for (std::int64_t j = 0; j < n; ++j) {
      const float value = bias ? c[j] + bias[j] : c[j];
      c[j] = relu && value <= 0.0F ? 0.0F : value; // NaN stays
    }
}

/// Where patch i of the grid goes.
MNEME_INLINE float* target_of(const patch_grid& in, const grid_target& out, std::int64_t i) {
  const std::int64_t x = i % in.grid_width, y = i / in.grid_width % in.grid_height;
  const std::int64_t image = i / (in.grid_width * in.grid_height);
  return out.c + ((image * out.height + y * out.step + out.from_y) * out.width + x * out.step + out.from_x) * out.n;
}

/// Patches patch .. last - 1, in bands of `Rows`; those that are left in narrower ones.
template <class Set, int Rows>
MNEME_INLINE void bands_of(const patch_product& product, std::int64_t term, std::int64_t terms, const workspace& space,
                           std::int64_t patch, std::int64_t last) {
  const bool add = product.add || term > 0, dense = product.out.step == 1,
             finished = term + terms == product.in.terms();
  float* c[Rows];
  for (; patch + Rows <= last; patch += Rows) {
    for (int r = 0; r < Rows; ++r)
      c[r] = target_of(product.in, product.out, patch + r);
    pack_patches(product.in, patch, Rows, term, terms, space.packed);
    if (!dense)
      scattered_band<Set, Rows, false>(space.packed, space.panels, terms, product.out.n, c, add);
    else if (add)
      dense_band<Set, Rows, false, true>(space.packed, space.panels, terms, product.out.n, c[0]);
    else
      dense_band<Set, Rows, false, false>(space.packed, space.panels, terms, product.out.n, c[0]);
    if (finished && (product.bias || product.relu)) // only asked for where results are dense
      finish_rows(c[0], Rows, product.out.n, product.bias, product.relu);
  }
  if constexpr (Rows > 1)
    if (patch < last)
      bands_of<Set, fewer_rows(Rows)>(product, term, terms, space, patch, last);
}

/// A block of patches whose results stay in the second-level cache, beside the part of b that a block of terms
/// needs; in it, band by band of patches in the first-level cache.
template <class Set>
MNEME_INLINE void patches_times_body(const patch_product& product, scratch& memory) {
  constexpr std::int64_t result_floats = std::int64_t{1} << 17U; // 512 KiB
  const std::int64_t terms = product.in.terms(), block_terms = even_blocks(terms, terms_max), n = product.out.n;
  const std::int64_t patches = product.in.patches();
  const std::int64_t block_patches = even_blocks(patches, result_floats / n < 192 ? 192 : result_floats / n);
  const workspace space{memory.take(0, patches_max * patch_floats), memory.take(1, block_terms * (n + 2 * Set::lanes))};
  for (std::int64_t patch = 0; patch < patches; patch += block_patches)
    for (std::int64_t term = 0; term < terms; term += block_terms) {
      const std::int64_t count = terms - term < block_terms ? terms - term : block_terms;
      if (patch == 0 || terms > block_terms)
        pack_panels<Set>(product.b + term * n, count, n, space.panels);
      bands_of<Set, tile_rows<Set>>(product, term, count, space, patch,
                                    patch + block_patches < patches ? patch + block_patches : patches);
    }
}

struct patch_correlation {
  patch_grid in{};
  const float* d = nullptr; // [patches, n]
  float* dw = nullptr;      // [terms, n]
  std::int64_t n = 0;
  float scale = 1.0F;
  bool add = false;
};

/// Terms i .. count - 1 of a block of patches, in bands of `Rows`; those that are left in narrower ones.
template <class Set, int Rows, bool Add>
MNEME_INLINE void term_bands(const patch_correlation& correlation, const workspace& space, std::int64_t patches,
                             std::int64_t term, std::int64_t count, std::int64_t i = 0) {
  for (; i + Rows <= count; i += Rows)
    dense_band<Set, Rows, true, Add>(space.packed + i, space.panels, patches, correlation.n,
                                     correlation.dw + (term + i) * correlation.n, correlation.scale);
  if constexpr (Rows > 1)
    if (i < count)
      term_bands<Set, fewer_rows(Rows), Add>(correlation, space, patches, term, count, i);
}

template <class Set>
MNEME_INLINE void patches_across_body(const patch_correlation& correlation, scratch& memory) {
  const std::int64_t terms = correlation.in.terms(), block_terms = even_blocks(terms, terms_max),
                     patches = correlation.in.patches();
  const std::int64_t block_patches = even_blocks(patches, patches_max);
  const workspace space{memory.take(0, patches_max * patch_floats),
                        memory.take(1, block_patches * (correlation.n + 2 * Set::lanes))};
  for (std::int64_t patch = 0; patch < patches; patch += block_patches) {
    const std::int64_t length = patches - patch < block_patches ? patches - patch : block_patches;
    pack_panels<Set>(correlation.d + patch * correlation.n, length, correlation.n, space.panels);
    for (std::int64_t term = 0; term < terms; term += block_terms) {
      const std::int64_t count = terms - term < block_terms ? terms - term : block_terms;
      pack_patches(correlation.in, patch, length, term, count, space.packed);
      if (correlation.add || patch > 0)
        term_bands<Set, tile_rows<Set>, true>(correlation, space, length, term, count);
      else
        term_bands<Set, tile_rows<Set>, false>(correlation, space, length, term, count);
    }
  }
}

MNEME_KERNEL(patches_times, (const patch_product& product, scratch& memory), (product, memory))
MNEME_KERNEL(patches_across, (const patch_correlation& correlation, scratch& memory), (correlation, memory))

patch_grid forward_grid(const conv_shape& shape, const float* x) {
  return {.source = x,
          .height = shape.height,
          .width = shape.width,
          .channels = shape.channels,
          .rows = shape.rows,
          .grid_height = shape.out_height(),
          .grid_width = shape.out_width(),
          .step = shape.stride,
          .from_y = -shape.padding,
          .from_x = -shape.padding,
          .taps_y = shape.kernel,
          .taps_x = shape.kernel};
}

/// Along one axis, the pixels of the input that are `phase` modulo the stride: the taps that reach them and the
/// pixels of the result these taps come from.
struct reached {
  std::int64_t pixels = 0; // of the input
  std::int64_t tap = 0;    // the last tap that reaches them; the others lie a stride each before it
  std::int64_t taps = 0;
  std::int64_t from = 0; // first pixel of the result for the first of `pixels`
};
reached reached_at(std::int64_t phase, std::int64_t pixels, const conv_shape& shape) {
  const std::int64_t first = (phase + shape.padding) % shape.stride;
  reached at{.pixels = ceil_div<std::int64_t>(pixels - phase, shape.stride)};
  if (first >= shape.kernel || pixels <= phase)
    return at;
  at.taps = (shape.kernel - 1 - first) / shape.stride + 1;
  at.tap = first + (at.taps - 1) * shape.stride;
  at.from = (phase + shape.padding - at.tap) / shape.stride;
  return at;
}

/// b [taps_y, taps_x, filters, channels]: the filters' taps that reach a phase, last first, turned for the way back.
void turn_filters(const conv_shape& shape, const float* w, const reached& y, const reached& x, float* b) {
  for (std::int64_t i = 0; i < y.taps; ++i)
    for (std::int64_t j = 0; j < x.taps; ++j, b += shape.filters * shape.channels)
      transpose(w + ((y.tap - i * shape.stride) * shape.kernel + x.tap - j * shape.stride) * shape.channels *
                        shape.filters,
                shape.channels, shape.filters, b);
}

/// Pixels of the input that nothing reads have no gradient.
void clear_phase(const conv_shape& shape, std::int64_t phase_y, std::int64_t phase_x, float* dx) {
  for (std::int64_t image = 0; image < shape.rows; ++image)
    for (std::int64_t y = phase_y; y < shape.height; y += shape.stride)
      for (std::int64_t x = phase_x; x < shape.width; x += shape.stride)
        std::fill_n(dx + ((image * shape.height + y) * shape.width + x) * shape.channels, shape.channels, 0.0F);
}

} // namespace

void convolve(const conv_shape& shape, const float* x, const float* w, const float* bias, bool relu, float* y,
              scratch& memory) {
  if (winograd_pays(shape))
    return winograd_convolve(shape, x, w, bias, relu, y, memory);
  best_patches_times({.in = forward_grid(shape, x),
                      .b = w,
                      .out = {.c = y, .height = shape.out_height(), .width = shape.out_width(), .n = shape.filters},
                      .bias = bias,
                      .relu = relu},
                     memory);
}

/// A phase at a time: under a stride s, pixels whose places are equal modulo s are reached by the same taps.
void convolve_back(const conv_shape& shape, const float* dy, const float* w, float* dx, bool add, scratch& memory) {
  if (winograd_pays(shape))
    return winograd_convolve_back(shape, dy, w, dx, add, memory);
  float* const turned = memory.take(2, shape.terms() * shape.filters);
  for (std::int64_t phase_y = 0; phase_y < shape.stride; ++phase_y)
    for (std::int64_t phase_x = 0; phase_x < shape.stride; ++phase_x) {
      const auto y = reached_at(phase_y, shape.height, shape), x = reached_at(phase_x, shape.width, shape);
      if (y.taps == 0 || x.taps == 0) {
        if (!add)
          clear_phase(shape, phase_y, phase_x, dx);
        continue;
      }
      turn_filters(shape, w, y, x, turned);
      best_patches_times({.in = {.source = dy,
                                 .height = shape.out_height(),
                                 .width = shape.out_width(),
                                 .channels = shape.filters,
                                 .rows = shape.rows,
                                 .grid_height = y.pixels,
                                 .grid_width = x.pixels,
                                 .step = 1,
                                 .from_y = y.from,
                                 .from_x = x.from,
                                 .taps_y = y.taps,
                                 .taps_x = x.taps},
                          .b = turned,
                          .out = {.c = dx,
                                  .height = shape.height,
                                  .width = shape.width,
                                  .n = shape.channels,
                                  .step = shape.stride,
                                  .from_y = phase_y,
                                  .from_x = phase_x},
                          .add = add},
                         memory);
    }
}

void correlate(const conv_shape& shape, const float* x, const float* dy, float* dw, float scale, bool add,
               scratch& memory) {
  if (winograd_pays(shape))
    return winograd_correlate(shape, x, dy, dw, scale, add, memory);
  best_patches_across({.in = forward_grid(shape, x), .d = dy, .dw = dw, .n = shape.filters, .scale = scale, .add = add},
                      memory);
}

} // namespace mneme::kernels
