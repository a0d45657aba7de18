#include "runtime/models/cosine_head.hpp"
#include "runtime/models/unit_rows.hpp"
#include <ATen/TensorOperators.h>
namespace mneme {
namespace {

// Axes: K models, B rows, C classes of the pass, D features. Models run one after the other: a product's bits
// depend on its shape, and that is the same for any K.

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
    const auto x = unit_rows_of(in.select(0, k)), w = unit_rows_of(weight_of(pass, k, shape_.weight_offset, shape_.in));
    const auto scale = pass.weights_row(k).narrow(0, shape_.scale_offset, 1);
    out.select(0, k).copy_(x.rows.mm(w.rows.t()) * scale);
  }
}

void cosine_head::backward(const layer_pass& pass, const backward_data& data, const gradient_sink& sink) const {
  for (std::int64_t k = 0; k < pass.models; ++k) {
    const auto x = unit_rows_of(data.in.select(0, k)),
               w = unit_rows_of(weight_of(pass, k, shape_.weight_offset, shape_.in));
    const auto scale = pass.weights_row(k).narrow(0, shape_.scale_offset, 1).clone(); // a sink may be the weights
    const auto d_out = data.d_out.select(0, k);                                       // [B, C]
    const auto d_scale = (d_out * x.rows.mm(w.rows.t())).sum().view({1});
    const auto d_cos = d_out * scale;
    if (data.d_in)
      data.d_in->select(0, k).copy_(through_unit(x, d_cos.mm(w.rows)));
    if (data.fixed)
      continue;
    write_gradient(sink, k, shape_.weight_offset + pass.classes.low * shape_.in,
                   through_unit(w, d_cos.t().mm(x.rows)).contiguous());
    write_gradient(sink, k, shape_.scale_offset, d_scale);
  }
}

// -- as a function ----------------------------------------------------------------------------------------------------

at::Tensor cosine_head::function(const function_pass& pass, const at::Tensor& in) const {
  const auto weight = pass.weights_at(shape_.weight_offset, {-1, shape_.in});
  return stacked_product(directions_of(in), directions_of(weight.narrow(1, pass.classes.low, pass.classes.size()))) *
         pass.weights_at(shape_.scale_offset, {1, 1});
}

} // namespace mneme
