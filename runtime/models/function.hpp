/// Nets as functions of LibTorch's operators, and what such a pass shows besides features and logits.
#pragma once
#include "runtime/models/model.hpp"
namespace mneme {

// Axes: K models in a stack, B rows of a step, P weights of a model, D features, C channels.

/// How a net runs as a function. Without `training` it is in evaluation mode.
struct function_mode {
  const training_mode* training = nullptr;
  bool statistics = false; ///< Statistics of what reaches batch normalisations are wanted, in either mode.
};

/// Mean and variance, by channel, of what reaches a batch normalisation: of a step's rows, and the running ones.
/// Matching them inverts a net (Yin et al. 2020, "Dreaming to Distill", eq. 4).
struct batch_statistics {
  std::string name{};                                ///< "layer1.0.bn2"
  at::Tensor mean{}, variance{};                     ///< [K, C]; biased, as the layer normalises
  at::Tensor running_mean{}, running_variance{};     ///< [K, C], or [1, C] where weights are shared
  std::int64_t values = 0;                           ///< Values that each mean is taken over.
  std::int64_t mean_offset = 0, variance_offset = 0; ///< Places of the running ones within [P].
  bool moves = false; ///< The layer was in training mode, which moves its running statistics.
};

/// What a layer has put out on the way, as an image: a flat row has one pixel.
struct named_map {
  std::string name{};
  at::Tensor values{}; ///< [K, B, C, height, width]
};

struct function_results {
  at::Tensor features{}; ///< [K, B, D]
  at::Tensor logits{};   ///< [K, B, classes.size()]; undefined where there is no head, or no class
  std::vector<named_map> maps{};
  std::vector<batch_statistics> statistics{}; ///< Empty unless wanted.
};

/// `weights` [K, P] with running statistics moved by what a pass has seen, as model::forward() moves them: a new
/// tensor. A layer leaves its own alone that saw a single value or was in evaluation mode, as all are in a pass of that
/// mode, and in one of training those that training_mode::trained leaves out.
[[nodiscard]] at::Tensor with_moved_statistics(const at::Tensor& weights,
                                               const std::vector<batch_statistics>& statistics);

/// What layers read of a pass.
struct function_pass {
  const std::vector<at::Tensor>& parameters; ///< [K or 1, size] each, in the layout's order
  const std::vector<std::int64_t>& offsets;  ///< Their places within [P], ascending.
  std::int64_t models = 0;                   ///< K
  std::int64_t rows = 0;                     ///< B
  class_range classes{};
  const training_mode* training = nullptr;
  std::vector<batch_statistics>* statistics = nullptr; ///< Null: not wanted.
  const at::Tensor* inputs = nullptr;                  ///< What the net reads, [K, B, floats].

  /// The weights from a parameter's offset on, [K or 1, sizes..]; several parameters where these lie side by side.
  /// One size may be -1: as many as the parameter has.
  [[nodiscard]] at::Tensor weights_at(std::int64_t offset, at::IntArrayRef sizes) const;
};

/// The mode of models first .. first + count - 1.
[[nodiscard]] training_mode of_models(const training_mode& all, std::int64_t first, std::int64_t count);

// Operators whose bits, on a CPU, depend neither on K nor on where operands lie. Vectors and what is left behind the
// last one are rounded differently, and bits of MKL's products may depend on a matrix's place within a cache line (see
// aligned_product.hpp): so values are brought to whole lines first.

/// a b^T for every model: a [K, m, k] or [1, m, k], b [K, n, k] or [1, n, k], to [K, m, n]. So are its derivatives.
[[nodiscard]] at::Tensor stacked_product(const at::Tensor& a, const at::Tensor& b);
/// `apply`, which works element by element, on values of any shape.
[[nodiscard]] at::Tensor by_element(const at::Tensor& values, at::Tensor (*apply)(const at::Tensor&));

} // namespace mneme
