/// cosine_head: logits = s cos(x, W_c), a row of W per class and one learnt scale s.
#pragma once
#include "runtime/models/layer.hpp"
namespace mneme {

/// The cosine classifier (Gidaris and Komodakis 2018, eq. 3) with PyTorch's bound on norms: vectors shorter than
/// 1e-12 are divided by that.
class cosine_head final : public layer {
public:
  struct shape {
    std::int64_t in = 0; ///< D
    std::int64_t weight_offset = 0, scale_offset = 0;
  };
  explicit cosine_head(const shape& sizes) : shape_(sizes) {}
  [[nodiscard]] std::int64_t width(class_range classes) const override { return classes.size(); }
  [[nodiscard]] std::int64_t kept_bytes_per_row() const override;
  [[nodiscard]] bool depends_on_row_count() const override { return true; }
  void forward(const layer_pass& pass, const at::Tensor& in, at::Tensor& out, at::Tensor& kept) const override;
  void backward(const layer_pass& pass, const backward_data& data, const gradient_sink& sink) const override;
  [[nodiscard]] at::Tensor function(const function_pass& pass, const at::Tensor& in) const override;

private:
  shape shape_;
};

} // namespace mneme
