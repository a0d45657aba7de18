#include "runtime/models/layer.hpp"
#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
namespace mneme {

const float* layer_pass::weights_of(std::int64_t k) const {
  return weights.const_data_ptr<float>() + (weights.size(0) == 1 ? 0 : k * weights.stride(0));
}

at::Tensor layer_pass::weights_row(std::int64_t k) const { return weights.select(0, weights.size(0) == 1 ? 0 : k); }

void write_gradient(const gradient_sink& sink, std::int64_t k, std::int64_t offset, const at::Tensor& gradient) {
  const auto flat = gradient.flatten();
  auto target = sink.into.select(0, k).narrow(0, offset, flat.numel());
  if (sink.add)
    target.add_(flat, sink.scale);
  else
    target.copy_(sink.scale == 1.0F ? flat : flat * sink.scale);
}

void write_gradients(const gradient_sink& sink, std::int64_t offset, const at::Tensor& gradients) {
  const auto flat = gradients.flatten(1);
  auto target = sink.into.narrow(1, offset, flat.size(1));
  if (sink.add)
    target.add_(flat, sink.scale);
  else
    target.copy_(sink.scale == 1.0F ? flat : flat * sink.scale);
}

at::Tensor parameter_view(const layer_pass& pass, std::int64_t offset, std::int64_t rows, std::int64_t columns) {
  auto view = pass.weights.narrow(1, offset, rows * columns).unflatten(1, {rows, columns});
  return view.size(0) == pass.models ? view : view.expand({pass.models, rows, columns});
}

void reshape_buffer(at::Tensor& buffer, at::IntArrayRef sizes, const at::Tensor& like, at::ScalarType type) {
  if (!buffer.defined() || buffer.use_count() > 1 || buffer.scalar_type() != type)
    buffer = at::empty(sizes, like.options().dtype(type));
  else if (buffer.sizes() != sizes)
    buffer.resize_(sizes);
}

} // namespace mneme
