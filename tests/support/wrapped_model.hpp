/// wrapped_model: net that forwards to another net, for test nets that differ in one respect.
#pragma once
#include "runtime/models/function.hpp"
namespace mneme::test {

/// Not declared as a chain of linear layers, so clients are trained in step.
class wrapped_model : public model {
public:
  explicit wrapped_model(model_ref inner) : inner_(std::move(inner)) {}
  const std::vector<parameter>& layout() const noexcept override { return inner_->layout(); }
  std::int64_t feature_width() const noexcept override { return inner_->feature_width(); }
  std::int64_t classes() const noexcept override { return inner_->classes(); }
  std::string identity() const override { return "wrapped " + inner_->identity(); }
  std::int64_t working_set(std::int64_t rows) const override { return inner_->working_set(rows); }
  activations forward(const at::Tensor& weights, const at::Tensor& inputs, class_range classes, tape* keep,
                      const training_mode* training) const override {
    return inner_->forward(weights, inputs, classes, keep, training);
  }
  void backward(const at::Tensor& weights, tape& kept, class_range classes, const at::Tensor& d_logits,
                const at::Tensor& d_features, const parameter_choice& trained,
                const gradient_sink& out) const override {
    inner_->backward(weights, kept, classes, d_logits, d_features, trained, out);
  }
  function_results differentiable(const at::Tensor& weights, const at::Tensor& inputs, class_range classes,
                                  const function_mode& mode) const override {
    return inner_->differentiable(weights, inputs, classes, mode);
  }

private:
  model_ref inner_;
};

} // namespace mneme::test
