/// adjustment_net: a feature adjustment module and a head, which read the features of a frozen backbone (FedHAF).
#pragma once
#include "runtime/models/model.hpp"
namespace mneme {

// D features of the backbone, C classes.

/// Where the module's shortcut begins and ends. The paper draws one between widths that differ and does not say how.
enum class shortcut_form : std::uint8_t {
  hidden_projection, ///< From the first hidden block to the output, through a matrix.
  input_projection,  ///< From the input to the output, through a matrix.
  hidden_sum,        ///< From the first hidden block to the last one, as it is.
  none,
};

/// Table 6 of the paper. Its batch normalisations of 1,024 behind 512 values and of 128 behind 256 are impossible: here
/// each is as wide as what precedes it; `hidden = [512, 1024]` widens the layer instead.
struct adjustment_shape {
  std::vector<std::int64_t> hidden{512, 512}; ///< Linear, batch norm, ReLU and dropout each.
  std::int64_t width = 256;                   ///< The output: linear, batch norm, shortcut.
  std::int64_t head = 128;                    ///< Linear, batch norm, ReLU and dropout; then a row per class.
  shortcut_form shortcut = shortcut_form::hidden_projection;
  bool batch_norm = true;
  double dropout = 0.2;
  bool adjusts = true; ///< False: there is no module, and the head reads the backbone's features.
};
/// Why there is no such net, and the key of [strategy] that says so; both empty: there is.
struct impossible_shape {
  std::string key{}, why{};
};
[[nodiscard]] impossible_shape wrong_shape(const adjustment_shape& shape);

/// Layers are "adjustment.fc1", "adjustment.bn1", ..., "adjustment.shortcut" and "head.fc1", "head.bn1", "head.fc2";
/// features are what the module puts out. @pre wrong_shape() says nothing
[[nodiscard]] model_ref adjustment_net(const adjustment_shape& shape, std::int64_t features, std::int64_t classes);

/// How its matrices are drawn.
enum class matrix_draw : std::uint8_t {
  kaiming, ///< N(0, 2 / fan in), biases 0 (He et al. 2015), for images.
  uniform, ///< U(-b, b) with b = 1 / sqrt(fan in), as PyTorch's layers, for texts.
};
/// [P] float32; rows of classes to come are drawn, too, and wait.
[[nodiscard]] at::Tensor drawn_adjustment(const model& net, matrix_draw how, const rng_key& key);

} // namespace mneme
