/// row_wise_model: a net that can tell whether a training leaves its features unchanged.
#pragma once
#include "runtime/models/model.hpp"
namespace mneme {

/// If a training leaves the features unchanged, they can be computed once per row and reused in all steps.
class row_wise_model : public model {
public:
  /// True if a training of `trained` changes no layer up to the features.
  [[nodiscard]] virtual bool trains_after_features(const parameter_choice& trained) const = 0;
  /// Runs the layers after the features [K, B, D] as forward() does; backward() may follow.
  /// @pre trains_after_features() is true for the trained parameters
  [[nodiscard]] virtual activations forward_from_features(const at::Tensor& weights, const at::Tensor& features,
                                                          class_range classes, tape& keep,
                                                          const training_mode& training) const = 0;
};

} // namespace mneme
