#include "runtime/models/token_embedding.hpp"
#include "runtime/base/check.hpp"
#include <ATen/TensorOperators.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <cmath>
#include <fmt/format.h>
#include <stdexcept>
namespace mneme {

// Axes: K models, B rows, T tokens of a row, V tokens of the vocabulary, D channels.

std::int64_t token_of(float value, std::int64_t vocabulary) {
  const auto token = static_cast<std::int64_t>(value);
  if (!(value >= 0.0F) || token >= vocabulary || static_cast<float>(token) != value)
    throw std::runtime_error(fmt::format("{} is not a token of this net; expected integers from 0 to {}: use a data "
                                         "set of tokens and a model.vocabulary that covers them",
                                         value, vocabulary - 1));
  return token;
}

at::Tensor token_embedding_layer::tokens_of(const at::Tensor& in, std::int64_t k) const {
  const auto host = in.select(0, k).detach().to(at::kCPU, at::kFloat).contiguous();
  auto tokens = at::empty({host.numel()}, at::kLong);
  for (std::int64_t i = 0; i < host.numel(); ++i)
    tokens.mutable_data_ptr<std::int64_t>()[i] = token_of(host.const_data_ptr<float>()[i], shape_.vocabulary);
  return tokens.to(in.device());
}

void token_embedding_layer::forward(const layer_pass& pass, const at::Tensor& in, at::Tensor& out,
                                    at::Tensor& /*kept*/) const {
  for (std::int64_t k = 0; k < pass.models; ++k) {
    const auto own = pass.weights_row(k);
    const auto words = own.narrow(0, shape_.weight_offset, shape_.vocabulary * shape_.channels)
                           .view({shape_.vocabulary, shape_.channels});
    auto rows = out.select(0, k).view({pass.rows, shape_.tokens, shape_.channels});
    rows.copy_(words.index_select(0, tokens_of(in, k)).view(rows.sizes()));
    if (shape_.position_offset >= 0)
      rows.add_(own.narrow(0, shape_.position_offset, shape_.tokens * shape_.channels)
                    .view({shape_.tokens, shape_.channels}));
    if (shape_.type_offset >= 0)
      rows.add_(own.narrow(0, shape_.type_offset, shape_.channels));
  }
}

/// Writes the gradients of a table of which only the first rows are read. The other rows get zeros.
void token_embedding_layer::backward_table(const gradient_sink& sink, std::int64_t k, std::int64_t offset,
                                           std::int64_t rows, const at::Tensor& first_rows) const {
  auto whole = at::zeros({rows, shape_.channels}, first_rows.options());
  whole.narrow(0, 0, first_rows.size(0)).copy_(first_rows);
  write_gradient(sink, k, offset, whole);
}

void token_embedding_layer::backward(const layer_pass& pass, const backward_data& data,
                                     const gradient_sink& sink) const {
  MNEME_CHECK(!data.d_in, shape_.tokens);
  for (std::int64_t k = 0; k < pass.models && !shape_.frozen; ++k) {
    const auto tokens = tokens_of(data.in, k).to(at::kCPU);
    const auto d = data.d_out.select(0, k).to(at::kCPU).contiguous(); // the CPU sums in a fixed order, for every device
    auto words = at::zeros({shape_.vocabulary, shape_.channels}, at::kFloat);
    for (std::int64_t i = 0; i < tokens.numel(); ++i) {
      const auto token = tokens.const_data_ptr<std::int64_t>()[i];
      float* const row = words.mutable_data_ptr<float>() + token * shape_.channels;
      for (std::int64_t c = 0; c < shape_.channels && token != shape_.padding; ++c)
        row[c] += d.const_data_ptr<float>()[i * shape_.channels + c];
    }
    write_gradient(sink, k, shape_.weight_offset, words.to(data.in.device()));
    const auto by_position = data.d_out.select(0, k).sum(0).view({shape_.tokens, shape_.channels});
    if (shape_.position_offset >= 0)
      backward_table(sink, k, shape_.position_offset, shape_.positions, by_position);
    if (shape_.type_offset >= 0)
      backward_table(sink, k, shape_.type_offset, shape_.types, by_position.sum(0, true));
  }
}

at::Tensor token_embedding_layer::function(const function_pass& pass, const at::Tensor& in) const {
  const auto words = pass.weights_at(shape_.weight_offset, {shape_.vocabulary, shape_.channels});
  std::vector<at::Tensor> rows;
  for (std::int64_t k = 0; k < pass.models; ++k) {
    const auto own = words.select(0, words.size(0) == 1 ? 0 : k);
    rows.push_back(at::embedding(own, tokens_of(in, k), shape_.padding).view({pass.rows, -1}));
  }
  auto embedded = at::stack(rows);
  const auto floats = shape_.tokens * shape_.channels;
  if (shape_.position_offset >= 0)
    embedded = embedded +
               pass.weights_at(shape_.position_offset, {1, shape_.positions * shape_.channels}).narrow(2, 0, floats);
  if (shape_.type_offset < 0)
    return embedded;
  const auto type = pass.weights_at(shape_.type_offset, {shape_.types, 1, shape_.channels}).narrow(1, 0, 1);
  return embedded + type.expand({-1, 1, shape_.tokens, -1}).flatten(2); // all tokens have text type 0
}

// -- one token --------------------------------------------------------------------------------------------------------

void chosen_token_layer::forward(const layer_pass&, const at::Tensor& in, at::Tensor& out, at::Tensor& /*kept*/) const {
  out.copy_(in.narrow(2, token_ * channels_, channels_));
}

void chosen_token_layer::backward(const layer_pass&, const backward_data& data, const gradient_sink& /*sink*/) const {
  if (!data.d_in)
    return;
  data.d_in->zero_();
  data.d_in->narrow(2, token_ * channels_, channels_).copy_(data.d_out);
}

at::Tensor chosen_token_layer::function(const function_pass&, const at::Tensor& in) const {
  return in.narrow(2, token_ * channels_, channels_);
}

} // namespace mneme
