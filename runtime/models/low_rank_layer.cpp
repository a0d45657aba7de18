#include "runtime/models/low_rank_layer.hpp"
#include "runtime/models/aligned_product.hpp"
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/zeros.h>
namespace mneme {

// Axes: K models, M = rows of a step times tokens of a row, r rank, n channels of a part, P weights.

namespace {

enum slot : std::size_t { part_slot = 3, gradient_slot = 4 }; // aligned_product() overwrites slots 0 to 2

/// Uninitialized matrix in slot `where` of the pass's memory. The matrix does not own its memory.
at::Tensor scratch_matrix(const layer_pass& pass, slot where, std::int64_t rows, std::int64_t columns) {
  return at::from_blob(pass.memory->take(where, rows * columns), {rows, columns}, at::kFloat);
}

} // namespace

std::int64_t low_rank_layer::kept_bytes_per_row() const {
  return std::ssize(shape_.parts) * shape_.tokens * shape_.rank * static_cast<std::int64_t>(sizeof(float));
}

bool low_rank_layer::covers_all() const {
  std::int64_t channels = 0;
  for (const auto& one : shape_.parts)
    channels += one.count;
  return channels == shape_.out;
}

at::Tensor low_rank_layer::down(const at::Tensor& flat, const part& one) const {
  return flat.narrow(0, one.down_offset, shape_.rank * shape_.in).view({shape_.rank, shape_.in});
}

at::Tensor low_rank_layer::up(const at::Tensor& flat, const part& one) const {
  return flat.narrow(0, one.up_offset, one.count * shape_.rank).view({one.count, shape_.rank});
}

void low_rank_layer::forward(const layer_pass& pass, const at::Tensor& in, at::Tensor& out, at::Tensor& kept) const {
  const auto tokens = pass.rows * shape_.tokens; // M
  const std::int64_t sizes[] = {pass.models, std::ssize(shape_.parts), tokens, shape_.rank};
  reshape_buffer(kept, sizes, in);
  if (!covers_all())
    out.zero_();
  for (std::int64_t k = 0; k < pass.models; ++k) {
    const auto own = pass.weights_row(k);
    const auto x = in.select(0, k).view({tokens, shape_.in});
    const auto y = out.select(0, k).view({tokens, shape_.out});
    for (std::size_t i = 0; i < shape_.parts.size(); ++i) {
      const auto& one = shape_.parts[i];
      const auto reduced = kept.select(0, k).select(0, static_cast<std::int64_t>(i)); // A x [M, r]
      aligned_product(reduced, reduced, x, down(own, one).t(), 0.0, 1.0, *pass.memory);
      const auto result = is_whole(one) ? y : scratch_matrix(pass, part_slot, tokens, one.count); // [M, n]
      aligned_product(result, result, reduced, up(own, one).t(), 0.0, shape_.scale, *pass.memory);
      if (!is_whole(one))
        y.narrow(1, one.first, one.count).copy_(result);
    }
  }
}

void low_rank_layer::backward(const layer_pass& pass, const backward_data& data, const gradient_sink& sink) const {
  const auto tokens = pass.rows * shape_.tokens;
  for (std::int64_t k = 0; k < pass.models; ++k) {
    const auto own = pass.weights_row(k), gradients = sink.into.select(0, k);
    const auto x = data.in.select(0, k).view({tokens, shape_.in});
    const auto d_y = data.d_out.select(0, k).view({tokens, shape_.out});
    for (std::size_t i = 0; i < shape_.parts.size(); ++i) {
      const auto& one = shape_.parts[i];
      auto d = d_y; // [M, n]
      if (!is_whole(one))
        d = scratch_matrix(pass, part_slot, tokens, one.count).copy_(d_y.narrow(1, one.first, one.count));
      const auto d_reduced = scratch_matrix(pass, gradient_slot, tokens, shape_.rank); // gradient of A x
      aligned_product(d_reduced, d_reduced, d, up(own, one), 0.0, shape_.scale, *pass.memory);
      if (data.d_in) {
        const auto d_x = data.d_in->select(0, k).view({tokens, shape_.in});
        aligned_product(d_x, d_x, d_reduced, down(own, one), data.add || i > 0 ? 1.0 : 0.0, 1.0, *pass.memory);
      }
      if (data.fixed)
        continue;
      const auto reduced = data.kept.select(0, k).select(0, static_cast<std::int64_t>(i));
      const auto d_up = up(gradients, one), d_down = down(gradients, one);
      const auto beta = sink.add ? 1.0 : 0.0;
      aligned_product(d_up, d_up, d.t(), reduced, beta, shape_.scale * sink.scale, *pass.memory);
      aligned_product(d_down, d_down, d_reduced.t(), x, beta, sink.scale, *pass.memory);
    }
  }
}

// -- as a differentiable function -------------------------------------------------------------------------------------

at::Tensor low_rank_layer::function(const function_pass& pass, const at::Tensor& in) const {
  const auto x = in.reshape({pass.models, -1, shape_.in}); // [K, M, in]
  std::vector<at::Tensor> columns;
  std::int64_t end = 0;
  const auto add_zeros = [&](std::int64_t until) {
    if (until > end)
      columns.push_back(at::zeros({x.size(0), x.size(1), until - end}, x.options()));
  };
  for (const auto& one : shape_.parts) {
    add_zeros(one.first);
    const auto reduced = stacked_product(x, pass.weights_at(one.down_offset, {shape_.rank, shape_.in}));
    columns.push_back(stacked_product(reduced, pass.weights_at(one.up_offset, {one.count, shape_.rank})) *
                      shape_.scale);
    end = one.first + one.count;
  }
  add_zeros(shape_.out);
  return at::cat(columns, 2).reshape({pass.models, pass.rows, -1});
}

} // namespace mneme
