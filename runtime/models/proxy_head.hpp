/// proxy_head: logits s m_c, where m_c is the softmax-weighted mean of a row's similarities to the proxies of class c.
#pragma once
#include "runtime/models/function_layer.hpp"
namespace mneme {

/// Sizes and weight offsets of a proxy_head.
struct proxy_head_shape {
  std::int64_t in = 0;      ///< D, the width of the features.
  std::int64_t proxies = 0; ///< N, the number of proxies of a class. The row of a class in the head is [N, D].
  std::int64_t weight_offset = 0, scale_offset = 0;
};

/// The local similarity classifier of PODNet (Douillard et al. 2020, eq. 9), as in the official code:
///     r_ck = -|x^ - w^_ck|^2 = 2 cos(x, w_ck) - 2,  a_ck = softmax_k(r_ck),  m_c = sum_k a_ck r_ck,
/// with a trained scale s and no bias. x^ and w^_ck are unit vectors (l2_normalize.hpp).
class proxy_head final : public function_layer {
public:
  explicit proxy_head(const proxy_head_shape& sizes) : shape_(sizes) {}
  [[nodiscard]] std::int64_t width(class_range classes) const override { return classes.size(); }
  [[nodiscard]] bool depends_on_row_count() const override { return true; }
  [[nodiscard]] std::int64_t kept_bytes_per_row() const override {
    return (shape_.in + 1) * static_cast<std::int64_t>(sizeof(float));
  }
  [[nodiscard]] at::Tensor function(const function_pass& pass, const at::Tensor& in) const override;

private:
  proxy_head_shape shape_;
};

} // namespace mneme
