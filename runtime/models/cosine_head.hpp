/// cosine_head: logits = s cos(x, W_c), with a row of W per class and one trained scale s.
#pragma once
#include "runtime/models/function_layer.hpp"
namespace mneme {

/// The cosine classifier (Gidaris and Komodakis 2018, eq. 3). As in PyTorch, norms below 1e-12 count as 1e-12.
class cosine_head final : public function_layer {
public:
  struct shape {
    std::int64_t in = 0; ///< D, width of the features.
    std::int64_t weight_offset = 0, scale_offset = 0;
  };
  explicit cosine_head(const shape& sizes) : shape_(sizes) {}
  [[nodiscard]] std::int64_t width(class_range classes) const override { return classes.size(); }
  [[nodiscard]] bool depends_on_row_count() const override { return true; }
  [[nodiscard]] std::int64_t kept_bytes_per_row() const override {
    return (shape_.in + 1) * static_cast<std::int64_t>(sizeof(float));
  }
  [[nodiscard]] at::Tensor function(const function_pass& pass, const at::Tensor& in) const override;

private:
  shape shape_;
};

} // namespace mneme
