#include "runtime/models/proxy_head.hpp"
#include "runtime/models/unit_rows.hpp"
#include <ATen/TensorOperators.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/softmax.h>
namespace mneme {
namespace {

// Axes: K models, B rows, C classes of the pass, N proxies of a class, D features. Models run one after the other: a
// product's bits depend on its shape, and that is the same for any K.

/// The proxies of the pass's classes, [C N, D].
at::Tensor proxies_of(const layer_pass& pass, std::int64_t k, const proxy_head_shape& shape) {
  const auto row = shape.proxies * shape.in;
  return pass.weights_row(k)
      .narrow(0, shape.weight_offset + pass.classes.low * row, pass.classes.size() * row)
      .view({pass.classes.size() * shape.proxies, shape.in});
}

struct merged {
  at::Tensor similarity{}; ///< r [B, C, N]
  at::Tensor share{};      ///< a [B, C, N]
  at::Tensor mean{};       ///< m [B, C]
};
merged merge(const at::Tensor& cosines, std::int64_t proxies) {
  const auto similarity = (cosines * 2.0 - 2.0).unflatten(1, {-1, proxies});
  const auto share = at::softmax(similarity, 2);
  return {similarity, share, (share * similarity).sum(2)};
}

} // namespace

std::int64_t proxy_head::kept_bytes_per_row() const {
  return (shape_.in + 1) * static_cast<std::int64_t>(sizeof(float));
}

void proxy_head::forward(const layer_pass& pass, const at::Tensor& in, at::Tensor& out, at::Tensor& /*kept*/) const {
  for (std::int64_t k = 0; k < pass.models; ++k) {
    const auto x = unit_rows_of(in.select(0, k)), w = unit_rows_of(proxies_of(pass, k, shape_));
    const auto scale = pass.weights_row(k).narrow(0, shape_.scale_offset, 1);
    out.select(0, k).copy_(merge(x.rows.mm(w.rows.t()), shape_.proxies).mean * scale);
  }
}

/// dm_c / dr_ck = a_ck (1 + r_ck - m_c), dr / dcos = 2.
void proxy_head::backward(const layer_pass& pass, const backward_data& data, const gradient_sink& sink) const {
  for (std::int64_t k = 0; k < pass.models; ++k) {
    const auto x = unit_rows_of(data.in.select(0, k)), w = unit_rows_of(proxies_of(pass, k, shape_));
    const auto scale = pass.weights_row(k).narrow(0, shape_.scale_offset, 1).clone(); // a sink may be the weights
    const auto d_out = data.d_out.select(0, k);                                       // [B, C]
    const auto classes = merge(x.rows.mm(w.rows.t()), shape_.proxies);
    const auto slope = classes.share * (classes.similarity - classes.mean.unsqueeze(2) + 1.0);
    const auto d_cos = (slope * (d_out * scale).unsqueeze(2)).flatten(1) * 2.0; // [B, C N]
    if (data.d_in)
      data.d_in->select(0, k).copy_(through_unit(x, d_cos.mm(w.rows)));
    if (data.fixed)
      continue;
    write_gradient(sink, k, shape_.weight_offset + pass.classes.low * shape_.proxies * shape_.in,
                   through_unit(w, d_cos.t().mm(x.rows)).contiguous());
    write_gradient(sink, k, shape_.scale_offset, (d_out * classes.mean).sum().view({1}));
  }
}

// -- as a function ----------------------------------------------------------------------------------------------------

at::Tensor proxy_head::function(const function_pass& pass, const at::Tensor& in) const {
  const auto rows = pass.weights_at(shape_.weight_offset, {-1, shape_.proxies * shape_.in})
                        .narrow(1, pass.classes.low, pass.classes.size())
                        .unflatten(2, {shape_.proxies, shape_.in})
                        .flatten(1, 2); // [K, C N, D]
  const auto cosines = stacked_product(directions_of(in), directions_of(rows));
  const auto similarity = (cosines * 2.0 - 2.0).unflatten(2, {-1, shape_.proxies}); // [K, B, C, N]
  const auto raised = by_element(similarity, [](const at::Tensor& values) { return at::exp(values); });
  const auto mean = (raised * similarity).sum(3) / raised.sum(3);
  return mean * pass.weights_at(shape_.scale_offset, {1, 1});
}

} // namespace mneme
