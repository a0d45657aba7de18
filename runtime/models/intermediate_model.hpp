/// intermediate_model: a net whose features are the output of an intermediate layer.
#pragma once
#include "runtime/models/model.hpp"
namespace mneme {

/// The features are the means of one of the net's maps, one per channel. There is no head. The weights are those of the
/// whole net.
class intermediate_model final : public model {
public:
  /// @param map one of net->maps() @param shape channels, height and width of an input image
  intermediate_model(model_ref net, std::string map, std::array<std::int64_t, 3> shape);

  [[nodiscard]] const std::vector<parameter>& layout() const noexcept override { return net_->layout(); }
  [[nodiscard]] std::int64_t feature_width() const noexcept override { return channels_; }
  [[nodiscard]] std::int64_t classes() const noexcept override { return 0; }
  [[nodiscard]] std::string identity() const override { return net_->identity() + " up to " + map_; }
  [[nodiscard]] std::int64_t working_set(std::int64_t rows) const override { return net_->working_set(rows); }
  [[nodiscard]] bool couples_batch_rows() const noexcept override { return net_->couples_batch_rows(); }
  [[nodiscard]] bool depends_on_row_count(class_range) const noexcept override {
    return net_->depends_on_row_count({});
  }
  [[nodiscard]] bool uses_random_numbers() const noexcept override { return net_->uses_random_numbers(); }
  [[nodiscard]] activations forward(const at::Tensor& weights, const at::Tensor& inputs, class_range classes,
                                    tape* keep, const training_mode* training) const override;
  void backward(const at::Tensor& weights, tape& kept, class_range classes, const at::Tensor& d_logits,
                const at::Tensor& d_features, const parameter_choice& trained, const gradient_sink& out) const override;
  [[nodiscard]] function_results differentiable(const at::Tensor& weights, const at::Tensor& inputs,
                                                class_range classes, const function_mode& mode) const override;

private:
  model_ref net_;
  std::string map_;
  std::int64_t channels_ = 0, height_ = 0, width_ = 0; // size of the map
};

} // namespace mneme
