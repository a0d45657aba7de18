#include "runtime/models/cosine_head.hpp"
#include <ATen/TensorOperators.h>
#include <ATen/ops/linalg_vector_norm.h>
namespace mneme {
namespace {

// Axes: K models, B rows, C classes of the pass, D features. Models run one after the other: a product's bits
// depend on its shape, and that is the same for any K.

constexpr double norm_min = 1e-12;

struct unit_rows {
  at::Tensor rows{};  ///< [n, D] of length 1
  at::Tensor norms{}; ///< [n, 1]
};
unit_rows unit(const at::Tensor& whole) {
  auto norms = at::linalg_vector_norm(whole, 2, at::IntArrayRef{1}, true).clamp_min(norm_min);
  return {whole / norms, norms};
}

/// What reaches the rows themselves of the gradient of their unit vectors.
at::Tensor through_unit(const unit_rows& rows, const at::Tensor& d_unit) {
  return (d_unit - rows.rows * (rows.rows * d_unit).sum(1, true)) / rows.norms;
}

at::Tensor weight_of(const layer_pass& pass, std::int64_t k, std::int64_t offset, std::int64_t in) {
  return pass.weights_row(k)
      .narrow(0, offset + pass.classes.low * in, pass.classes.size() * in)
      .view({pass.classes.size(), in}); // [C, D]
}

} // namespace

std::int64_t cosine_head::kept_bytes_per_row() const {
  return (shape_.in + 1) * static_cast<std::int64_t>(sizeof(float));
}

void cosine_head::forward(const layer_pass& pass, const at::Tensor& in, at::Tensor& out, at::Tensor& /*kept*/) const {
  for (std::int64_t k = 0; k < pass.models; ++k) {
    const auto x = unit(in.select(0, k)), w = unit(weight_of(pass, k, shape_.weight_offset, shape_.in));
    const auto scale = pass.weights_row(k).narrow(0, shape_.scale_offset, 1);
    out.select(0, k).copy_(x.rows.mm(w.rows.t()) * scale);
  }
}

void cosine_head::backward(const layer_pass& pass, const backward_data& data, const gradient_sink& sink) const {
  for (std::int64_t k = 0; k < pass.models; ++k) {
    const auto x = unit(data.in.select(0, k)), w = unit(weight_of(pass, k, shape_.weight_offset, shape_.in));
    const auto scale = pass.weights_row(k).narrow(0, shape_.scale_offset, 1).clone(); // a sink may be the weights
    const auto d_out = data.d_out.select(0, k);                                       // [B, C]
    const auto d_scale = (d_out * x.rows.mm(w.rows.t())).sum().view({1});
    const auto d_cos = d_out * scale;
    if (data.d_in)
      data.d_in->select(0, k).copy_(through_unit(x, d_cos.mm(w.rows)));
    write_gradient(sink, k, shape_.weight_offset + pass.classes.low * shape_.in,
                   through_unit(w, d_cos.t().mm(x.rows)).contiguous());
    write_gradient(sink, k, shape_.scale_offset, d_scale);
  }
}

// -- as a function ----------------------------------------------------------------------------------------------------

at::Tensor cosine_head::function(const function_pass& pass, const at::Tensor& in) const {
  const auto directions = [](const at::Tensor& rows) {
    return rows / at::linalg_vector_norm(rows, 2, at::IntArrayRef{2}, true).clamp_min(norm_min);
  };
  const auto weight = pass.weights_at(shape_.weight_offset, {-1, shape_.in});
  return stacked_product(directions(in), directions(weight.narrow(1, pass.classes.low, pass.classes.size()))) *
         pass.weights_at(shape_.scale_offset, {1, 1});
}

} // namespace mneme
