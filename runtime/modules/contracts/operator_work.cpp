#include "runtime/modules/contracts/operator_work.hpp"
#include <algorithm>
#include <cmath>
#include <map>
namespace mneme {
namespace {

double numbers_of(const at::Tensor& tensor) { return tensor.defined() ? static_cast<double>(tensor.numel()) : 0.0; }

double product_of(const std::vector<std::int64_t>& sizes) {
  double product = 1.0;
  for (const auto size : sizes)
    product *= static_cast<double>(std::max<std::int64_t>(size, 1));
  return product;
}

/// Returns the value of `list` for `axis`. A list with one value applies to all axes; an empty list yields `otherwise`.
double item_of(const std::vector<std::int64_t>& list, std::int64_t axis, std::int64_t otherwise) {
  if (list.empty())
    return static_cast<double>(otherwise);
  return static_cast<double>(list[std::min(static_cast<std::size_t>(axis), list.size() - 1)]);
}

/// Multiplications: each output position (input position if transposed) uses every weight once.
double convolution_work(const operator_call& call) {
  const auto rows = call.tensor("input"), weight = call.tensor("weight");
  if (!rows.defined() || !weight.defined() || weight.dim() < 3 || rows.dim() < weight.dim() - 1)
    return 0.0; // LibTorch rejects such a call
  const bool is_transposed = call.name().starts_with("aten::conv_transpose") || call.flag("transposed");
  const auto strides = call.integers("stride"), paddings = call.integers("padding");
  double places = rows.dim() == weight.dim() ? static_cast<double>(rows.size(0)) : 1.0;
  for (std::int64_t axis = 0; axis < weight.dim() - 2; ++axis) {
    const auto size = static_cast<double>(rows.size(rows.dim() - weight.dim() + 2 + axis));
    const auto padding = item_of(paddings, axis, weight.size(2 + axis)); // empty for "same"
    const auto stride = std::max(item_of(strides, axis, 1), 1.0);
    places *= is_transposed ? size : (size + 2.0 * padding) / stride + 1.0;
  }
  return places * numbers_of(weight);
}

double linear_work(const operator_call& call) {
  const auto weight = call.tensor("weight");
  return numbers_of(call.tensor("input")) *
         (weight.defined() && weight.dim() == 2 ? static_cast<double>(weight.size(0)) : 1.0);
}

/// Product of matrices [.., m, k] and [.., k, n]: the number of matrices, after their leading axes are broadcast, times
/// m k n.
double product_work(const at::Tensor& a, const at::Tensor& b) {
  if (!a.defined() || !b.defined() || a.dim() == 0)
    return 0.0;
  const auto size_of = [](const at::Tensor& tensor, std::int64_t axis_from_end) {
    return axis_from_end < tensor.dim() ? tensor.size(tensor.dim() - 1 - axis_from_end) : std::int64_t{1};
  };
  double work = static_cast<double>(size_of(a, 1)) * static_cast<double>(size_of(a, 0));
  if (b.dim() > 1)
    work *= static_cast<double>(size_of(b, 0));
  for (std::int64_t axis = 2; axis < std::max(a.dim(), b.dim()); ++axis)
    work *= static_cast<double>(std::max(size_of(a, axis), size_of(b, axis)));
  return work;
}

/// Uses the first two tensors of mm, bmm and matmul, and the second and third of addmm and similar operators.
double matrix_work(const operator_call& call) {
  for (const auto* const first : {"mat1", "batch1"})
    if (const auto a = call.tensor(first); a.defined())
      return product_work(a, call.tensor(first[0] == 'm' ? "mat2" : "batch2"));
  for (const auto* const second : {"mat2", "other", "vec", "tensor", "vec2"})
    if (const auto b = call.tensor(second); b.defined())
      return product_work(call.tensor("self"), b);
  return 0.0;
}

/// Upper bound for a product of two tensors: all pairs of their elements.
double pairs_work(const operator_call& call) {
  double work = 1.0;
  for (const auto& value : call.arguments) {
    if (value.isTensor())
      work *= std::max(numbers_of(value.toTensor()), 1.0);
    if (value.isTensorList())
      for (const auto& tensor : value.toTensorVector())
        work *= std::max(numbers_of(tensor), 1.0);
  }
  return work;
}

/// Product of the sizes of all index letters: b * i * j * k for einsum("bik,bkj->bij").
double einsum_work(const operator_call& call) {
  const auto* const equation = call.find("equation");
  const auto tensors = call.tensors("tensors");
  if (!equation || !equation->isString() || equation->toStringRef().find('.') != std::string::npos)
    return pairs_work(call);
  std::map<char, std::int64_t> sizes;
  std::size_t tensor = 0;
  std::int64_t axis = 0;
  for (const char letter : equation->toStringRef()) {
    if (letter == '-')
      break;
    if (letter == ',') {
      ++tensor;
      axis = 0;
    } else if (letter != ' ' && tensor < tensors.size() && axis < tensors[tensor].dim()) {
      auto& size = sizes[letter];
      size = std::max(size, tensors[tensor].size(axis++));
    }
  }
  double work = 1.0;
  for (const auto& [letter, size] : sizes)
    work *= static_cast<double>(size);
  return work;
}

double attention_work(const operator_call& call) {
  const auto keys = call.tensor("key");
  return 2.0 * numbers_of(call.tensor("query")) *
         (keys.defined() && keys.dim() > 1 ? static_cast<double>(keys.size(-2)) : 1.0);
}

double recurrent_work(const operator_call& call) {
  const auto packed = call.tensor("data"), rows = packed.defined() ? packed : call.tensor("input");
  double weights = 0.0;
  for (const auto& weight : call.tensors("params"))
    weights += numbers_of(weight);
  const auto width = rows.defined() && rows.dim() > 0 ? static_cast<double>(rows.size(-1)) : 1.0;
  return weights * numbers_of(rows) / std::max(width, 1.0);
}

double pooling_work(const operator_call& call) {
  const auto rows = call.tensor("self");
  const auto window = product_of(call.integers("kernel_size"));
  const auto strides = call.integers("stride");
  const auto shrunk = strides.empty() ? window : product_of(strides);
  const auto results = rows.defined() && rows.dim() > 1
                           ? product_of(call.integers("output_size")) * static_cast<double>(rows.size(0) * rows.size(1))
                           : 0.0;
  return 4.0 * numbers_of(rows) * std::max(window / shrunk, 1.0) + results;
}

/// Each result is the mean or maximum of the inputs in its window. A window's sides are the input's sides divided by
/// the result's sides, rounded up.
double adaptive_pooling_work(const operator_call& call) {
  const auto rows = call.tensor("self");
  const auto sides = call.integers("output_size");
  if (!rows.defined() || rows.dim() < static_cast<std::int64_t>(sides.size()) || sides.empty())
    return 0.0;
  const auto axes = static_cast<std::int64_t>(sides.size());
  double work = 4.0;
  for (std::int64_t axis = 0; axis < rows.dim(); ++axis) {
    const auto size = static_cast<double>(rows.size(axis));
    const auto pooled = axis - (rows.dim() - axes);
    const auto side = pooled < 0 ? size : static_cast<double>(sides[static_cast<std::size_t>(pooled)]);
    work *= side > 0 ? side * (std::ceil(size / side) + (pooled < 0 ? 0.0 : 1.0)) : 1.0;
  }
  return std::max(work, 4.0 * numbers_of(rows));
}

/// LibTorch computes one output feature at a time, which takes 0.1 ms with gradients: much longer than its
/// multiplications.
double bilinear_work(const operator_call& call) {
  constexpr double per_feature = 1e7;
  const auto weight = call.tensor("weight");
  const auto features = weight.defined() && weight.dim() > 0 ? static_cast<double>(weight.size(0)) : 0.0;
  return pairs_work(call) + per_feature * features;
}

using work_function = double (*)(const operator_call&);

std::map<std::string, work_function, std::less<>> every_function() {
  std::map<std::string, work_function, std::less<>> table;
  const auto add = [&](std::initializer_list<const char*> names, work_function function) {
    for (const auto* const name : names)
      table.emplace(std::string("aten::") + name, function);
  };
  add({"conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "convolution",
       "_convolution"},
      convolution_work);
  add({"linear"}, linear_work);
  add({"matmul", "mm", "bmm", "mv", "dot", "addmm", "addmm_", "addmv", "addbmm", "baddbmm"}, matrix_work);
  add({"einsum"}, einsum_work);
  add({"bilinear"}, bilinear_work);
  add({"tensordot", "inner", "outer", "ger", "kron", "cdist", "cosine_similarity"}, pairs_work);
  add({"scaled_dot_product_attention", "_native_multi_head_attention"}, attention_work);
  add({"lstm", "gru", "rnn_tanh", "rnn_relu", "lstm_cell", "gru_cell"}, recurrent_work);
  add({"max_pool1d", "max_pool2d", "max_pool3d", "avg_pool1d", "avg_pool2d", "avg_pool3d", "lp_pool1d", "im2col",
       "col2im"},
      pooling_work);
  add({"adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool1d",
       "adaptive_max_pool2d", "adaptive_max_pool3d"},
      adaptive_pooling_work);
  return table;
}

} // namespace

double work_of_call(const operator_call& call) {
  static const auto table = every_function();
  double given = 0.0;
  for (const auto& value : call.arguments) {
    if (value.isTensor())
      given += numbers_of(value.toTensor());
    if (value.isTensorList())
      for (const auto& tensor : value.toTensorVector())
        given += numbers_of(tensor);
  }
  const auto place = table.find(call.name());
  return place == table.end() ? given : std::max(given, place->second(call));
}

} // namespace mneme
