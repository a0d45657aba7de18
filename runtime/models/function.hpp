/// function: nets as functions of LibTorch's operators, and the results of such passes.
#pragma once
#include "runtime/models/model.hpp"
namespace mneme {

// Axes: K models in a stack, B rows of a step, P weights of a model, D features, C channels.

/// Options of model::differentiable(). Without `training` the net is in evaluation mode.
struct function_mode {
  const training_mode* training = nullptr;
  bool statistics = false; ///< true: return the statistics of batch normalizations' inputs, in either mode.
};

/// Mean and variance, by channel, of a batch normalization's inputs in a step, and the running statistics. A net can be
/// inverted by matching the two (Yin et al. 2020, "Dreaming to Distill", eq. 4).
struct batch_statistics {
  std::string name{};                                ///< Name of the layer, such as "layer1.0.bn2".
  at::Tensor mean{}, variance{};                     ///< [K, C]; biased variance, as in the layer
  at::Tensor running_mean{}, running_variance{};     ///< [K, C], or [1, C] if weights are shared
  std::int64_t values = 0;                           ///< Number of values per mean.
  std::int64_t mean_offset = 0, variance_offset = 0; ///< Offsets of the running statistics within [P].
  bool moves = false;    ///< true: the layer was in training mode, which updates its running statistics.
  double momentum = 0.1; ///< Weight of the batch in an update of the running statistics, as in torch.nn.BatchNorm2d.
};

/// Output of an intermediate layer as an image; a flat row has one pixel.
struct named_map {
  std::string name{};
  at::Tensor values{}; ///< [K, B, C, height, width]
};

/// Results of model::differentiable().
struct function_results {
  at::Tensor features{}; ///< [K, B, D]
  at::Tensor logits{};   ///< [K, B, classes.size()]; undefined without a head or without classes
  std::vector<named_map> maps{};
  std::vector<batch_statistics> statistics{}; ///< Empty unless requested.
};

/// Returns a copy of `weights` [K, P] whose running statistics are updated from a pass, as by model::forward(). The
/// statistics of a layer stay unchanged if it read a single value per channel or was in evaluation mode. In a training
/// pass, layers that training_mode::trained excludes are in evaluation mode.
[[nodiscard]] at::Tensor with_updated_running_stats(const at::Tensor& weights,
                                                    const std::vector<batch_statistics>& statistics);

/// Stacks the statistics of a group's models layer by layer and appends them to `to`.
void add_statistics(std::vector<batch_statistics>& to, const std::vector<std::vector<batch_statistics>>& by_model);

/// Arguments of layer::function(): weights, sizes and mode of a pass.
struct function_pass {
  const std::vector<at::Tensor>& parameters; ///< [K or 1, size] each, in the layout's order
  const std::vector<std::int64_t>& offsets;  ///< The offsets of `parameters` within [P], ascending.
  std::int64_t models = 0;                   ///< K
  std::int64_t rows = 0;                     ///< B
  class_range classes{};
  const training_mode* training = nullptr;
  std::vector<batch_statistics>* statistics = nullptr; ///< Receives the statistics; null: not requested.
  const at::Tensor* inputs = nullptr;                  ///< The net's inputs, [K, B, floats].
  /// One flag per running statistic of the layer: true if a training pass updates it. Null: no statistic is updated.
  const std::vector<bool>* updated = nullptr;
  /// True: gradients of the results are not differentiated again, and layers write updated running statistics to the
  /// weights.
  bool first_order = false;

  /// Returns the weights from a parameter's offset on as [K or 1, sizes..]; they may span several adjacent parameters.
  /// One size may be -1: it is inferred from the parameter.
  [[nodiscard]] at::Tensor weights_at(std::int64_t offset, at::IntArrayRef sizes) const;
};

/// Returns the mode restricted to models first .. first + count - 1.
[[nodiscard]] training_mode of_models(const training_mode& all, std::int64_t first, std::int64_t count);

// Operators whose bits on a CPU depend neither on K nor on the alignment of their operands. LibTorch rounds values in
// full vectors differently from those after the last full vector. The bits of MKL's products may depend on the offset
// of a matrix within a cache line (aligned_product.hpp). These operators therefore copy values to whole cache lines
// first.

/// Returns a b^T [K, m, n] for all models. a is [K, m, k] or [1, m, k], and b is [K, n, k] or [1, n, k]. The
/// derivatives have the same property.
[[nodiscard]] at::Tensor stacked_product(const at::Tensor& a, const at::Tensor& b);
/// Applies the elementwise function `apply` to values of any shape.
[[nodiscard]] at::Tensor by_element(const at::Tensor& values, at::Tensor (*apply)(const at::Tensor&));

} // namespace mneme
