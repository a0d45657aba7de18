/// optimizer_steps: SGD, Adam and gradient clipping for the rows of a fused group on a device.
#pragma once
#include "runtime/kernels/cuda/thread_index.hpp"
#include "runtime/kernels/elementwise.hpp"
#include <cmath>
namespace mneme::kernels::cuda {

// Axes: K models of a launch, P weights of a model. A quad is four consecutive weights whose first index is a multiple
// of four. Pieces may begin and end at any index.

/// A trained range of [P].
struct piece {
  std::int64_t begin = 0, end = 0;
};
inline constexpr int pieces_max = 16; ///< Limit per launch, because pieces are arguments of the kernel.
/// Trained ranges of one launch.
struct piece_list {
  piece at[pieces_max] = {};
  int count = 0;
};
inline std::int64_t quads_of_longest(const piece_list& pieces) {
  std::int64_t longest = 0;
  for (int i = 0; i < pieces.count; ++i) {
    const auto quads = (pieces.at[i].end + 3) / 4 - pieces.at[i].begin / 4;
    longest = quads > longest ? quads : longest;
  }
  return longest;
}

/// One row per model, `pitch` floats apart.
template <class Float>
struct rows_of {
  Float* data = nullptr;
  std::int64_t pitch = 0;
  MNEME_HOST_DEVICE Float* operator[](std::int64_t k) const { return data + k * pitch; }
  /// True if quads of every row are aligned for one instruction.
  [[nodiscard]] bool has_quads() const { return is_aligned(data, sizeof(four_floats)) && pitch % 4 == 0; }
};
inline constexpr int fused_clients_max = 256; ///< Limit of models per launch if each has its own rates.

/// SGD with or without momentum and weight decay, like kernels::sgd.
struct sgd_models {
  rows_of<float> weights{};
  rows_of<const float> gradients{};
  rows_of<float> momentum{}; ///< Null: no momentum.
  std::int64_t models = 0;
  piece_list pieces{};
  sgd_step with{};
  bool quads = false; ///< true: all three rows have quads.
};

/// Factors that depend on the number of steps of a model.
struct adam_rate {
  float step_size = 0.0F, root_correction = 1.0F;
};
/// Adam and AdamW, like kernels::adam. @pre models <= models_max
struct adam_models {
  rows_of<float> weights{};
  rows_of<const float> gradients{};
  rows_of<float> first{}, second{};
  std::int64_t models = 0;
  piece_list pieces{};
  adam_step with{}; ///< `rates` replaces its step_size and root_correction.
  bool quads = false;
  adam_rate rates[fused_clients_max] = {};
};

/// partial[k, lane] is the sum of squares of the elements of model k that belong to the lane. The assignment of
/// elements to lanes is fixed.
inline constexpr std::int64_t norm_lanes = 1024;
struct squares_of_models {
  rows_of<const float> gradients{};
  std::int64_t models = 0;
  piece_list pieces{};
  double* partial = nullptr; ///< [models, norm_lanes]
};
/// factor[k]: multiplier for the gradients of model k, so that their norm is at most `norm_max`.
struct clip_factors {
  const double* partial = nullptr; ///< [models, norm_lanes]
  float* factor = nullptr;         ///< [models]
  std::int64_t models = 0;
  double norm_max = 0.0, epsilon = 0.0;
};
/// Multiplies the gradients of model k by factor[k].
struct scaled_models {
  rows_of<float> gradients{};
  const float* factor = nullptr; ///< [models]
  std::int64_t models = 0;
  piece_list pieces{};
  bool quads = false;
};

// -- One element ------------------------------------------------------------------------------------------------------

/// @param v velocity; unused without momentum
MNEME_HOST_DEVICE inline void sgd_step_of_element(float& w, float g, float& v, bool has_velocity,
                                                  const sgd_step& with) {
  float change = g + with.weight_decay * w;
  if (has_velocity) {
    change = with.momentum * v + change;
    v = change;
  }
  w -= with.learning_rate * change;
}

MNEME_HOST_DEVICE inline void adam_step_of_element(float& w, float g, float& m, float& v, const adam_step& with,
                                                   const adam_rate& now) {
  const float gradient = g + with.decay * w;
  m += (1.0F - with.first) * (gradient - m);
  v = with.second * v + (1.0F - with.second) * gradient * gradient;
  const float root = std::sqrt(v) / now.root_correction + with.epsilon;
  w = with.shrink * w - now.step_size * m / root;
}

// -- One thread -------------------------------------------------------------------------------------------------------

/// Calls whole(i) for quads i .. i + 3 within the pieces if `quads`, and element(i) for the other indices.
template <class Whole, class One>
MNEME_HOST_DEVICE void for_each_quad(const piece_list& pieces, bool quads, share x, const Whole& whole,
                                     const One& element) {
  for (int p = 0; p < pieces.count; ++p) {
    const piece part = pieces.at[p];
    const std::int64_t last = (part.end + 3) / 4;
    for (std::int64_t quad = part.begin / 4 + x.first; quad < last; quad += x.step) {
      const std::int64_t i = quad * 4;
      if (quads && i >= part.begin && i + 4 <= part.end) {
        whole(i);
        continue;
      }
      const std::int64_t begin = i < part.begin ? part.begin : i, end = i + 4 < part.end ? i + 4 : part.end;
      for (std::int64_t j = begin; j < end; ++j)
        element(j);
    }
  }
}

MNEME_HOST_DEVICE inline four_floats& quad_at(float* row, std::int64_t i) {
  return *reinterpret_cast<four_floats*>(row + i);
}
MNEME_HOST_DEVICE inline const four_floats& quad_at(const float* row, std::int64_t i) {
  return *reinterpret_cast<const four_floats*>(row + i);
}

MNEME_HOST_DEVICE inline void run_thread(const sgd_models& on, thread_index at) {
  for (std::int64_t k = at.y.first; k < on.models; k += at.y.step) {
    float* const w = on.weights[k];
    const float* const g = on.gradients[k];
    float* const v = on.momentum.data ? on.momentum[k] : nullptr;
    for_each_quad(
        on.pieces, on.quads, at.x,
        [&](std::int64_t i) {
          four_floats weights = quad_at(w, i), velocity{};
          const four_floats gradients = quad_at(g, i);
          if (v)
            velocity = quad_at(v, i);
          for (int j = 0; j < 4; ++j)
            sgd_step_of_element(weights.at[j], gradients.at[j], velocity.at[j], v != nullptr, on.with);
          if (v)
            quad_at(v, i) = velocity;
          quad_at(w, i) = weights;
        },
        [&](std::int64_t i) {
          float none = 0.0F;
          sgd_step_of_element(w[i], g[i], v ? v[i] : none, v != nullptr, on.with);
        });
  }
}

MNEME_HOST_DEVICE inline void run_thread(const adam_models& on, thread_index at) {
  for (std::int64_t k = at.y.first; k < on.models; k += at.y.step) {
    float *const w = on.weights[k], *const m = on.first[k], *const v = on.second[k];
    const float* const g = on.gradients[k];
    const adam_rate now = on.rates[k];
    for_each_quad(
        on.pieces, on.quads, at.x,
        [&](std::int64_t i) {
          four_floats weights = quad_at(w, i), first = quad_at(m, i), second = quad_at(v, i);
          const four_floats gradients = quad_at(g, i);
          for (int j = 0; j < 4; ++j)
            adam_step_of_element(weights.at[j], gradients.at[j], first.at[j], second.at[j], on.with, now);
          quad_at(m, i) = first;
          quad_at(v, i) = second;
          quad_at(w, i) = weights;
        },
        [&](std::int64_t i) { adam_step_of_element(w[i], g[i], m[i], v[i], on.with, now); });
  }
}

/// @pre the grid is norm_lanes wide: one thread per lane
MNEME_HOST_DEVICE inline void run_thread(const squares_of_models& on, thread_index at) {
  for (std::int64_t k = at.y.first; k < on.models; k += at.y.step) {
    const float* const g = on.gradients[k];
    double sum = on.partial[k * norm_lanes + at.x.first];
    const auto add = [&](std::int64_t i) { sum += static_cast<double>(g[i]) * static_cast<double>(g[i]); };
    for_each_quad(on.pieces, false, at.x, add, add);
    on.partial[k * norm_lanes + at.x.first] = sum;
  }
}

MNEME_HOST_DEVICE inline void run_thread(const clip_factors& on, thread_index at) {
  for (std::int64_t k = at.x.first; k < on.models; k += at.x.step) {
    double squares = 0.0;
    for (std::int64_t lane = 0; lane < norm_lanes; ++lane)
      squares += on.partial[k * norm_lanes + lane];
    const double factor = on.norm_max / (std::sqrt(squares) + on.epsilon);
    on.factor[k] = factor < 1.0 ? static_cast<float>(factor) : 1.0F; // the factor is 1 for a NaN norm, so that NaN
                                                                     // reaches the weights
  }
}

MNEME_HOST_DEVICE inline void run_thread(const scaled_models& on, thread_index at) {
  for (std::int64_t k = at.y.first; k < on.models; k += at.y.step) {
    const float factor = on.factor[k];
    float* const g = on.gradients[k];
    if (factor == 1.0F)
      continue;
    for_each_quad(
        on.pieces, on.quads, at.x,
        [&](std::int64_t i) {
          four_floats gradients = quad_at(g, i);
          for (float& value : gradients.at)
            value *= factor;
          quad_at(g, i) = gradients;
        },
        [&](std::int64_t i) { g[i] *= factor; });
  }
}

// -- Grids ------------------------------------------------------------------------------------------------------------

inline grid_shape grid_of(const sgd_models& on) { return grid_for(quads_of_longest(on.pieces), on.models); }
inline grid_shape grid_of(const adam_models& on) { return grid_for(quads_of_longest(on.pieces), on.models); }
inline grid_shape grid_of(const scaled_models& on) { return grid_for(quads_of_longest(on.pieces), on.models); }
inline grid_shape grid_of(const clip_factors& on) { return grid_for(on.models); }
inline grid_shape grid_of(const squares_of_models& on) { return grid_for(norm_lanes, on.models); }

} // namespace mneme::kernels::cuda
