/// adjustment_net: FedHAF's feature adjustment module and classification head, on the features of a frozen backbone.
#pragma once
#include "runtime/models/model.hpp"
namespace mneme {

// Axes: D features of the backbone, C classes, P parameters of the net.

/// Start and end of the module's shortcut. The paper draws a shortcut between layers of different widths and does not
/// state how they are matched.
enum class shortcut_form : std::uint8_t {
  hidden_projection, ///< From the first hidden block to the output, through a matrix.
  input_projection,  ///< From the input to the output, through a matrix.
  hidden_sum,        ///< From the first hidden block to the last one, without a matrix.
  none,
};

/// Sizes of the net; the defaults are those of the paper's Table 6. The table prints a batch normalization of width
/// 1,024 after a layer of width 512, and one of 128 after 256, which is impossible. In mneme, each batch normalization
/// is as wide as the layer before it. `hidden = [512, 1024]` widens the layer instead.
struct adjustment_shape {
  std::vector<std::int64_t> hidden{512, 512}; ///< Widths of the hidden blocks: linear, batch norm, ReLU, dropout.
  std::int64_t width = 256;                   ///< Width of the output block: linear, batch norm, shortcut.
  std::int64_t head = 128;                    ///< Width of the head's hidden block: linear, batch norm, ReLU, dropout.
                                              ///< A linear layer [C] follows.
  shortcut_form shortcut = shortcut_form::hidden_projection;
  bool batch_norm = true;
  double dropout = 0.2;
  bool adjusts = true; ///< False: the net has no module, and the head reads the backbone's features.
};
/// Error of a shape: the invalid key in [strategy] and the error text. Both are empty for a valid shape.
struct impossible_shape {
  std::string key{}, reason{};
};
/// Validates a shape.
[[nodiscard]] impossible_shape shape_error(const adjustment_shape& shape);

/// Builds the net. Its layers are named "adjustment.fc1", "adjustment.bn1", ..., "adjustment.shortcut", "head.fc1",
/// "head.bn1" and "head.fc2". Its features are the module's output. @pre shape_error() returns empty texts
[[nodiscard]] model_ref adjustment_net(const adjustment_shape& shape, std::int64_t features, std::int64_t classes);

/// Initial distribution of the weight matrices.
enum class matrix_draw : std::uint8_t {
  kaiming, ///< N(0, 2 / fan_in), biases 0 (He et al. 2015); for images.
  uniform, ///< U(-b, b) with b = 1 / sqrt(fan_in), as PyTorch's linear layers; for texts.
};
/// Draws initial weights [P], float32, by `key`. The rows of the head for future classes are drawn as well.
[[nodiscard]] at::Tensor draw_adjustment(const model& net, matrix_draw how, const rng_key& key);

} // namespace mneme
