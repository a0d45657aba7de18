/// fold_uploads: weighted sum of uploads in float64 on a device.
#pragma once
#include "runtime/kernels/cuda/thread_index.hpp"
namespace mneme::kernels::cuda {

// Axis: P numbers of an upload. One thread computes each sum, in the order of uploads and launches.

inline constexpr int uploads_max = 8; ///< Maximum number of uploads per launch. A launch reads and writes the sum once.

/// sum[i] = (...((sum[i] + weight[0] * upload[0][i]) + weight[1] * upload[1][i]) ...)
struct folded_uploads {
  double* sum = nullptr;                 ///< [P]
  const float* upload[uploads_max] = {}; ///< [count] pointers to [P]
  double weight[uploads_max] = {};       ///< [count]
  int count = 0;
  std::int64_t size = 0;
  bool quads = false; ///< true: all addresses are multiples of 16 bytes.
};

/// mean[i] = sum[i] / weight; resets the sum to zero.
struct folded_mean {
  double* sum = nullptr; ///< [P]
  float* mean = nullptr; ///< [P]
  std::int64_t size = 0;
  double weight = 1.0;
  bool quads = false;
};

/// Calls whole(i) for each quad i .. i + 3 of 0 .. size - 1 if `quads`, and element(i) for the remaining indices.
template <class Whole, class One>
MNEME_HOST_DEVICE void for_each_quad(std::int64_t size, bool quads, share x, const Whole& whole, const One& element) {
  for (std::int64_t i = x.first * 4; i < size; i += x.step * 4) {
    if (quads && i + 4 <= size) {
      whole(i);
      continue;
    }
    for (std::int64_t j = i; j < (i + 4 < size ? i + 4 : size); ++j)
      element(j);
  }
}

MNEME_HOST_DEVICE inline void run_thread(const folded_uploads& on, thread_index at) {
  for_each_quad(
      on.size, on.quads, at.x,
      [&](std::int64_t i) {
        auto* const sums = reinterpret_cast<two_doubles*>(on.sum + i);
        two_doubles low = sums[0], high = sums[1];
        for (int u = 0; u < on.count; ++u) {
          const four_floats upload = *reinterpret_cast<const four_floats*>(on.upload[u] + i);
          low.at[0] += on.weight[u] * static_cast<double>(upload.at[0]);
          low.at[1] += on.weight[u] * static_cast<double>(upload.at[1]);
          high.at[0] += on.weight[u] * static_cast<double>(upload.at[2]);
          high.at[1] += on.weight[u] * static_cast<double>(upload.at[3]);
        }
        sums[0] = low;
        sums[1] = high;
      },
      [&](std::int64_t i) {
        double sum = on.sum[i];
        for (int u = 0; u < on.count; ++u)
          sum += on.weight[u] * static_cast<double>(on.upload[u][i]);
        on.sum[i] = sum;
      });
}

MNEME_HOST_DEVICE inline void run_thread(const folded_mean& on, thread_index at) {
  for_each_quad(
      on.size, on.quads, at.x,
      [&](std::int64_t i) {
        auto* const sums = reinterpret_cast<two_doubles*>(on.sum + i);
        const two_doubles low = sums[0], high = sums[1];
        four_floats mean{};
        mean.at[0] = static_cast<float>(low.at[0] / on.weight);
        mean.at[1] = static_cast<float>(low.at[1] / on.weight);
        mean.at[2] = static_cast<float>(high.at[0] / on.weight);
        mean.at[3] = static_cast<float>(high.at[1] / on.weight);
        *reinterpret_cast<four_floats*>(on.mean + i) = mean;
        sums[0] = sums[1] = two_doubles{};
      },
      [&](std::int64_t i) {
        on.mean[i] = static_cast<float>(on.sum[i] / on.weight);
        on.sum[i] = 0.0;
      });
}

inline grid_shape grid_of(const folded_uploads& on) { return grid_for((on.size + 3) / 4); }
inline grid_shape grid_of(const folded_mean& on) { return grid_for((on.size + 3) / 4); }

} // namespace mneme::kernels::cuda
