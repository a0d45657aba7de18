/// sequential: a model whose layers follow each other; the last one is its head.
#pragma once
#include "runtime/models/layers.hpp"
namespace mneme {

class sequential final : public model {
public:
  /// @param identity what the net computes ("mlp 784-200-100-10")
  /// @param shape C, H, W of one row of its inputs
  sequential(std::string identity, std::array<std::int64_t, 3> shape);

  // Layers in the order of the forward pass, called by the factory only.
  void add_linear(const std::string& name, std::int64_t out, activation after);
  void add_convolution(const std::string& name, std::int64_t filters, std::int64_t kernel, std::int64_t padding,
                       activation after);
  void add_max_pool();
  /// Ends the net: one row per class.
  void add_head(const std::string& name, std::int64_t classes);

  [[nodiscard]] const std::vector<parameter>& layout() const noexcept override { return layout_; }
  [[nodiscard]] std::int64_t feature_width() const noexcept override { return feature_width_; }
  [[nodiscard]] std::int64_t classes() const noexcept override { return classes_; }
  [[nodiscard]] std::string identity() const override { return identity_; }
  [[nodiscard]] std::int64_t working_set(std::int64_t rows) const override;
  [[nodiscard]] activations forward(const at::Tensor& weights, const at::Tensor& inputs, class_range classes,
                                    tape* keep) const override;
  void backward(const at::Tensor& weights, tape& kept, class_range classes, const at::Tensor& d_logits,
                const at::Tensor& d_features, bool head_only, const gradient_sink& out) const override;

private:
  /// Appends `name`.weight of `shape` and `name`.bias; returns their offsets.
  std::pair<std::int64_t, std::int64_t> add_parameters(const std::string& name, std::vector<std::int64_t> shape,
                                                       bool head);
  [[nodiscard]] std::int64_t row_floats() const { return shape_[0] * shape_[1] * shape_[2]; }

  std::string identity_;
  std::array<std::int64_t, 3> shape_; // of what the last layer added puts out; 1, 1, D after a linear layer
  std::int64_t input_width_ = 0, feature_width_ = 0, classes_ = 0;
  std::vector<parameter> layout_;
  std::vector<std::unique_ptr<layer>> layers_;
};

} // namespace mneme
