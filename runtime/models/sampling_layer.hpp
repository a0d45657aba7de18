/// sampling_layer: draws a sample of the normal distribution whose means and log standard deviations are its input.
#pragma once
#include "runtime/models/function_layer.hpp"
namespace mneme {

/// z = mu + exp(l) e with e ~ N(0, 1), drawn for every row and step (Kingma and Welling 2014, section 2.4); in
/// evaluation z = mu. l is clamped to [low, high] and has no gradient outside of these bounds. Noise is keyed by the
/// model's random stream of the step and the layer's number, in row order. It depends neither on other models nor on
/// padded rows.
class sampling_layer final : public function_layer {
public:
  struct shape {
    std::int64_t width = 0;   ///< D, the width of a sample; an input row has 2 D numbers, mu first.
    std::uint64_t number = 0; ///< Number of the layer, unique among the layers of a net that draw.
    double low = -6.0, high = 3.0;
  };
  explicit sampling_layer(const shape& sizes) : shape_(sizes) {}
  [[nodiscard]] std::int64_t width(class_range) const override { return shape_.width; }
  [[nodiscard]] std::int64_t kept_bytes_per_row() const override {
    return shape_.width * static_cast<std::int64_t>(sizeof(float));
  }
  [[nodiscard]] at::Tensor function(const function_pass& pass, const at::Tensor& in) const override;

private:
  [[nodiscard]] at::Tensor noise_of(const training_mode& training, at::IntArrayRef sizes) const;

  shape shape_;
};

} // namespace mneme
