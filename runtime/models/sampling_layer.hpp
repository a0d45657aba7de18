/// sampling_layer: a sample of the normal whose mean and log deviation are its input, halves of a row.
#pragma once
#include "runtime/models/function_layer.hpp"
namespace mneme {

/// z = mu + exp(l) e with e ~ N(0, 1) drawn anew for every row and step (Kingma and Welling 2014, section 2.4); in
/// evaluation z = mu. l is kept within bounds, beyond which it has no gradient. Draws are keyed by the model's stream
/// of the step and the layer's number, row by row, so they depend neither on other models nor on padded rows.
class sampling_layer final : public function_layer {
public:
  struct shape {
    std::int64_t width = 0;   ///< D: rows of 2 D come in, mu first.
    std::uint64_t number = 0; ///< Tells the drawing layers of a net apart.
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
