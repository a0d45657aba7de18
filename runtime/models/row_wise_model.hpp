/// row_wise_model: a net that reports its predictions per row, and whether a training leaves its features unchanged.
#pragma once
#include "runtime/models/model.hpp"
namespace mneme {

/// If a training leaves the features unchanged, they can be computed once per row and reused in all steps.
class row_wise_model : public model {
public:
  /// Predictions of a row: T if the net predicts the next token after each of a row's T tokens, else 1. The logits of
  /// such a net are [K, B * T, classes()], its classes are the tokens of its vocabulary, and a pass covers all of them.
  [[nodiscard]] virtual std::int64_t positions() const noexcept { return 1; }
  /// True if a training of `trained` changes no layer up to the features.
  [[nodiscard]] virtual bool trains_after_features(const parameter_choice& trained) const = 0;
  /// Runs the layers after the features [K, B, D] as forward() does; backward() may follow.
  /// @pre trains_after_features() is true for the trained parameters
  [[nodiscard]] virtual activations forward_from_features(const at::Tensor& weights, const at::Tensor& features,
                                                          class_range classes, tape& keep,
                                                          const training_mode& training) const = 0;
};

/// row_wise_model::positions() of the net; 1 for other models.
[[nodiscard]] inline std::int64_t positions_of(const model& net) {
  const auto* const row_wise = dynamic_cast<const row_wise_model*>(&net);
  return row_wise ? row_wise->positions() : 1;
}

} // namespace mneme
