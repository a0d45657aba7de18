#include "runtime/models/attention_layer.hpp"
#include "runtime/kernels/token_rows.hpp"
#include <ATen/TensorOperators.h>
#include <ATen/ops/_softmax_backward_data.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/eq.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/softmax.h>
#include <algorithm>
#include <cmath>
namespace mneme {

// Axes: K models, B rows of a step, T tokens, Q query tokens, H heads, d channels of a head, N = rows times heads.

/// Queries [N, Q, d], keys and values [N, T, d]; views of the input have [rows, H] instead of [N].
struct attention_layer::operands {
  at::Tensor queries, keys, values;
};

namespace {

constexpr double unseen = -1e30; // score of a masked token: lower than every real score, and finite after scaling

enum slot : std::size_t { operand_slot, score_slot, d_score_slot, d_mixed_slot, result_slot };

/// Uninitialized tensor of shape `sizes` in slot `where` of the pass's memory. The tensor does not own its memory.
at::Tensor non_owning(const layer_pass& pass, slot where, at::IntArrayRef sizes) {
  return at::from_blob(pass.memory->take(where, c10::multiply_integers(sizes)), sizes, at::kFloat);
}

/// The mask of one block: `rows` rows of model k from row `first` on. A mask of all rows, or an undefined one, is
/// returned unchanged.
at::Tensor rows_of_block(const at::Tensor& hidden, const layer_pass& pass, std::int64_t k, std::int64_t first,
                         std::int64_t rows) {
  return hidden.defined() && hidden.size(0) > 1 ? hidden.narrow(0, k * pass.rows + first, rows) : hidden;
}

/// softmax(factor * scores) over the last axis, with zeros for masked tokens.
/// @param scores [rows, H, Q, T] @param hidden [rows, 1, 1, T] or [1, 1, Q, T], or undefined: no mask
at::Tensor shares_of(const at::Tensor& scores, double factor, const at::Tensor& hidden) {
  if (!hidden.defined())
    return at::softmax(scores * factor, 3);
  return at::softmax((scores * factor).masked_fill(hidden, unseen), 3).masked_fill(hidden, 0.0);
}

} // namespace

double attention_layer::scale() const {
  const std::int64_t head_channels = shape_.channels / shape_.heads;
  return 1.0 / std::sqrt(static_cast<double>(head_channels));
}

/// Rows per block. All blocks of a model except the last have one shape, and a block's working set fits into the
/// second-level cache.
std::int64_t attention_layer::block_rows() const {
  constexpr std::int64_t cache_floats = std::int64_t{1} << 18U;
  const auto row_floats = shape_.tokens * (shape_.heads * shape_.queries + 3 * shape_.channels);
  return std::max<std::int64_t>(cache_floats / row_floats, 1);
}

/// Returns the view [rows, H, tokens, d] of rows [.., tokens * channels].
at::Tensor attention_layer::by_head(const at::Tensor& rows) const {
  return rows.view({-1, rows.size(-1) / shape_.channels, shape_.heads, shape_.channels / shape_.heads}).transpose(1, 2);
}

/// Returns views [rows, H, .., d] of the queries, keys and values in `in` [.., tokens * 3 * channels].
attention_layer::operands attention_layer::operands_of(const at::Tensor& in) const {
  const auto d = shape_.channels / shape_.heads;
  const auto whole = in.view({-1, shape_.tokens, 3, shape_.heads, d}).permute({2, 0, 3, 1, 4});
  return {whole[0].narrow(2, 0, shape_.queries), whole[1], whole[2]};
}

/// Mask [K B, 1, 1, T] of all rows of the models: true for padding tokens. For a causal layer, the mask [1, 1, Q, T] of
/// each row: true for tokens after the query. Undefined if no token is masked.
at::Tensor attention_layer::hidden_in(const at::Tensor* inputs) const {
  if (shape_.causal && shape_.tokens > 1)
    return at::ones({1, 1, shape_.queries, shape_.tokens}, inputs->options().dtype(at::kBool)).triu(1);
  if (shape_.padding < 0)
    return {};
  return at::eq(inputs->detach().reshape({-1, 1, 1, shape_.tokens}), shape_.padding);
}

// -- CPU, block by block ----------------------------------------------------------------------------------------------

/// Returns contiguous copies of a block's operands, in the pass's memory.
attention_layer::operands attention_layer::copies_of(const layer_pass& pass, const operands& from) const {
  const auto n = from.keys.size(0) * shape_.heads, d = shape_.channels / shape_.heads;
  const auto whole = non_owning(pass, operand_slot, {n * (shape_.queries + 2 * shape_.tokens) * d});
  std::int64_t taken = 0;
  const auto copied = [&](const at::Tensor& values) {
    auto copy = whole.narrow(0, taken, values.numel()).view({n, values.size(2), d});
    taken += values.numel();
    copy.view(values.sizes()).copy_(values);
    return copy;
  };
  return {copied(from.queries), copied(from.keys), copied(from.values)};
}

/// Returns softmax(Q K^T scale) [N, Q, T], with zeros for masked tokens.
at::Tensor attention_layer::attend(const layer_pass& pass, const operands& with, const at::Tensor& hidden) const {
  auto weights = non_owning(pass, score_slot, {with.keys.size(0), shape_.queries, shape_.tokens});
  at::bmm_out(weights, with.queries, with.keys.transpose(1, 2));
  auto by_row = weights.view({-1, shape_.heads, shape_.queries, shape_.tokens});
  if (hidden.defined())
    by_row.masked_fill_(hidden, unseen);
  kernels::softmax_rows(weights.mutable_data_ptr<float>(), weights.size(0) * shape_.queries, shape_.tokens,
                        static_cast<float>(scale()));
  if (hidden.defined())
    by_row.masked_fill_(hidden, 0.0);
  return weights;
}

void attention_layer::forward(const layer_pass& pass, const at::Tensor& in, at::Tensor& out,
                              at::Tensor& /*kept*/) const {
  const auto hidden = hidden_in(pass.inputs);
  for (std::int64_t k = 0; k < pass.models; ++k)
    for (std::int64_t first = 0; first < pass.rows; first += block_rows()) {
      const auto rows = std::min(block_rows(), pass.rows - first);
      const auto from = operands_of(in.select(0, k).narrow(0, first, rows));
      const auto with = copies_of(pass, from);
      auto mixed = non_owning(pass, result_slot, with.queries.sizes());
      at::bmm_out(mixed, attend(pass, with, rows_of_block(hidden, pass, k, first, rows)), with.values);
      by_head(out.select(0, k).narrow(0, first, rows)).copy_(mixed.view(from.queries.sizes()));
    }
}

void attention_layer::backward(const layer_pass& pass, const backward_data& data, const gradient_sink& /*sink*/) const {
  if (!data.d_in)
    return;
  const auto hidden = hidden_in(pass.inputs);
  for (std::int64_t k = 0; k < pass.models; ++k)
    for (std::int64_t first = 0; first < pass.rows; first += block_rows()) {
      const auto rows = std::min(block_rows(), pass.rows - first);
      const auto block = [&](const at::Tensor& whole) { return whole.select(0, k).narrow(0, first, rows); };
      backward_block(pass, operands_of(block(data.in)), rows_of_block(hidden, pass, k, first, rows),
                     by_head(block(data.d_out)), operands_of(block(*data.d_in)));
    }
  if (shape_.queries < shape_.tokens) // queries of the other tokens receive no gradient
    data.d_in->view({-1, shape_.tokens, 3, shape_.channels})
        .narrow(1, shape_.queries, shape_.tokens - shape_.queries)
        .select(2, 0)
        .zero_();
}

/// Writes the gradients of a block's operands to `d_from`, whose views have the shapes of `from`.
/// @param d_mixed [rows, H, Q, d] gradient of the block's result
void attention_layer::backward_block(const layer_pass& pass, const operands& from, const at::Tensor& hidden,
                                     const at::Tensor& d_mixed, const operands& d_from) const {
  const auto with = copies_of(pass, from);
  const auto weights = attend(pass, with, hidden);
  auto d = non_owning(pass, d_mixed_slot, with.queries.sizes()),
       d_weights = non_owning(pass, d_score_slot, weights.sizes());
  d.view(d_mixed.sizes()).copy_(d_mixed);
  const auto deliver = [&](const at::Tensor& a, const at::Tensor& b, const at::Tensor& to) {
    auto result = non_owning(pass, result_slot, {a.size(0), a.size(1), b.size(2)});
    at::bmm_out(result, a, b);
    to.copy_(result.view(to.sizes()));
  };
  deliver(weights.transpose(1, 2), d, d_from.values);
  at::bmm_out(d_weights, d, with.values.transpose(1, 2));
  at::_softmax_backward_data_out(d_weights, d_weights, weights, 2, at::kFloat).mul_(scale());
  deliver(d_weights, with.keys, d_from.queries);
  deliver(d_weights.transpose(1, 2), with.queries, d_from.keys);
}

// -- as a differentiable function -------------------------------------------------------------------------------------

at::Tensor attention_layer::function(const function_pass& pass, const at::Tensor& in) const {
  const auto [queries, keys, values] = operands_of(in.contiguous()); // [K B, H, .., d]
  const auto scores = stacked_product(queries.flatten(0, 1), keys.flatten(0, 1)).unflatten(0, {-1, shape_.heads});
  const auto shares = shares_of(scores, scale(), hidden_in(pass.inputs)).flatten(0, 1);
  const auto mixed = stacked_product(shares, values.flatten(0, 1).transpose(1, 2)); // [K B H, Q, d]
  return mixed.unflatten(0, {-1, shape_.heads}).transpose(1, 2).reshape({pass.models, pass.rows, -1});
}

} // namespace mneme
