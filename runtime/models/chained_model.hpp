/// chained_model: a frozen net, the front, and a trainable net, the back, that reads the front's features.
#pragma once
#include "runtime/models/model.hpp"
namespace mneme {

/// The weights are the front's weights, followed by the back's weights. The features are the front's features. The
/// front is in evaluation mode and its parameters are frozen: training changes the back only, and losses on features
/// change nothing.
class chained_model final : public model {
public:
  /// @param back reads rows of front->feature_width() numbers
  chained_model(model_ref front, model_ref back);

  [[nodiscard]] const std::vector<parameter>& layout() const noexcept override { return layout_; }
  [[nodiscard]] std::int64_t feature_width() const noexcept override { return front_->feature_width(); }
  [[nodiscard]] std::int64_t classes() const noexcept override { return back_->classes(); }
  [[nodiscard]] std::string identity() const override { return front_->identity() + " | " + back_->identity(); }
  [[nodiscard]] std::int64_t working_set(std::int64_t rows) const override {
    return front_->working_set(rows) + back_->working_set(rows);
  }
  [[nodiscard]] bool couples_batch_rows() const noexcept override { return back_->couples_batch_rows(); }
  [[nodiscard]] bool depends_on_row_count(class_range classes) const noexcept override {
    return front_->depends_on_row_count({}) || (classes.size() > 0 && back_->depends_on_row_count(classes));
  }
  [[nodiscard]] bool uses_random_numbers() const noexcept override { return back_->uses_random_numbers(); }
  [[nodiscard]] activations forward(const at::Tensor& weights, const at::Tensor& inputs, class_range classes,
                                    tape* keep, const training_mode* training) const override;
  void backward(const at::Tensor& weights, tape& kept, class_range classes, const at::Tensor& d_logits,
                const at::Tensor& d_features, const parameter_choice& trained, const gradient_sink& out) const override;
  [[nodiscard]] function_results differentiable(const at::Tensor& weights, const at::Tensor& inputs,
                                                class_range classes, const function_mode& mode) const override;

private:
  [[nodiscard]] parameter_choice of_back(const parameter_choice& trained) const;

  model_ref front_, back_;
  std::vector<parameter> layout_;
};

} // namespace mneme
