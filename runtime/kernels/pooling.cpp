#include "runtime/kernels/pooling.hpp"
#include "runtime/kernels/instruction_set.hpp"
#include <algorithm>
namespace mneme::kernels {
namespace {

template <class Set>
MNEME_INLINE void mean_pool_body(std::int64_t rows, std::int64_t pixels, std::int64_t channels, const float* x,
                                 float* y) {
  for (std::int64_t row = 0; row < rows; ++row, y += channels) {
    std::fill_n(y, channels, 0.0F);
    for (std::int64_t pixel = 0; pixel < pixels; ++pixel, x += channels)
      for (std::int64_t c = 0; c < channels; ++c)
        y[c] += x[c];
    for (std::int64_t c = 0; c < channels; ++c)
      y[c] /= static_cast<float>(pixels);
  }
}

MNEME_KERNEL(mean_pool, (std::int64_t rows, std::int64_t pixels, std::int64_t channels, const float* x, float* y),
             (rows, pixels, channels, x, y))

} // namespace

void mean_pool(std::int64_t rows, std::int64_t pixels, std::int64_t channels, const float* x, float* y) {
  best_mean_pool(rows, pixels, channels, x, y);
}

} // namespace mneme::kernels
