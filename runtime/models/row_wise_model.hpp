/// row_wise_model: a net that says which of its passes give a row the same bits whoever shares them.
#pragma once
#include "runtime/models/model.hpp"
namespace mneme {

/// What such passes show of a row may be computed once and used in every step of a training.
class row_wise_model : public model {
public:
  /// True if a training of `trained` leaves everything up to the features as it is.
  [[nodiscard]] virtual bool trains_behind_features(const parameter_choice& trained) const = 0;
  /// forward() of what lies behind the features [K, B, D]. backward() may follow it.
  /// @pre trains_behind_features() of what is trained
  [[nodiscard]] virtual activations forward_from_features(const at::Tensor& weights, const at::Tensor& features,
                                                          class_range classes, tape& keep,
                                                          const training_mode& training) const = 0;
};

} // namespace mneme
