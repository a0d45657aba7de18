#include "runtime/models/work_count.hpp"
#include "runtime/base/autograd_on.hpp"
#include "runtime/base/exception_message.hpp"
#include "runtime/models/function.hpp"
#include <ATen/ops/zeros.h>
#include <ATen/record_function.h>
#include <algorithm>
#include <new>
#include <stdexcept>
#include <string_view>
namespace mneme {
namespace {

// Axes: B matrices of a stack, [m, k] times [k, n].

using arguments = c10::ArrayRef<const c10::IValue>;

/// Products of two stacks of matrices, whose last two axes are multiplied.
struct stack_of_products {
  std::int64_t count = 1; // B
  product_shape each{};
  [[nodiscard]] double operations() const {
    return 2.0 * static_cast<double>(count) * static_cast<double>(each.m) * static_cast<double>(each.k) *
           static_cast<double>(each.n);
  }
};

std::int64_t axis(const at::Tensor& values, std::int64_t from_last) {
  return values.dim() > from_last ? values.size(-1 - from_last) : 1;
}

/// Product of a [B or 1, m, k] and b [B or 1, k, n], or b [B or 1, n, k] if `transposed`.
stack_of_products of_matrices(const at::Tensor& a, const at::Tensor& b, bool transposed) {
  return {.count = std::max(axis(a, 2), axis(b, 2)),
          .each = {.m = axis(a, 1), .k = axis(a, 0), .n = axis(b, transposed ? 1 : 0)}};
}

/// A convolution as a product. Each value of weight [filters, channels of a group, kernel...] is multiplied by every
/// pixel of the result, or, if transposed, of the input.
stack_of_products of_convolution(arguments given) {
  const auto input = given[0].toTensor(), weight = given[1].toTensor();
  const auto stride = given[3].toIntVector(), padding = given[4].toIntVector(), dilation = given[5].toIntVector();
  const bool transposed = given[6].toBool();
  std::int64_t pixels = input.size(0);
  for (std::size_t i = 0; i + 2 < static_cast<std::size_t>(input.dim()); ++i) {
    const auto at = [&](const std::vector<std::int64_t>& values) { return values[values.size() == 1 ? 0 : i]; };
    const auto in = input.size(static_cast<std::int64_t>(i) + 2),
               kernel = weight.size(static_cast<std::int64_t>(i) + 2);
    pixels *= transposed ? in : (in + 2 * at(padding) - at(dilation) * (kernel - 1) - 1) / at(stride) + 1;
  }
  return {.each = {.m = pixels, .k = weight.numel() / std::max<std::int64_t>(weight.size(0), 1), .n = weight.size(0)}};
}

/// Counts the products of the current thread during its lifetime.
class product_count {
public:
  explicit product_count(pass_work& into)
      : handle_(at::addThreadLocalCallback(at::RecordFunctionCallback(&begin, &end).needsInputs(true))) {
    counted = {.into = &into};
  }
  ~product_count() {
    at::removeCallback(handle_);
    counted = {};
  }
  product_count(const product_count&) = delete;
  product_count& operator=(const product_count&) = delete;

private:
  struct state {
    pass_work* into = nullptr;
    int within = 0; // depth of nested calls inside products that have been counted
  };

  static bool is_product(std::string_view name) {
    return name == stacked_product_name || name == "aten::mm" || name == "aten::bmm" || name == "aten::mv" ||
           name == "aten::addmm" || name == "aten::baddbmm" || name == "aten::addmv" || name == "aten::_convolution" ||
           name.starts_with("aten::_scaled_dot_product_flash_attention");
  }

  static std::unique_ptr<at::ObserverContext> begin(const at::RecordFunction& called) {
    const std::string_view name = called.name();
    if (!is_product(name) || counted.within++ > 0)
      return nullptr;
    const auto given = called.inputs();
    if (name == "aten::_convolution") {
      note(of_convolution(given), given[0].toTensor(), given[1].toTensor());
    } else if (name.starts_with("aten::_scaled")) { // q k^T, and the product of attention weights and v
      const auto q = given[0].toTensor(), k = given[1].toTensor(), v = given[2].toTensor();
      auto scores = of_matrices(q, k, true), mixed = of_matrices(q, v, false);
      scores.count = mixed.count = q.numel() / std::max<std::int64_t>(q.size(-1) * q.size(-2), 1);
      mixed.each = {.m = q.size(-2), .k = k.size(-2), .n = v.size(-1)};
      note(scores, q, k);
      note(mixed, q, v);
    } else {
      const std::size_t first =
          name.starts_with("aten::add") || name == "aten::baddbmm" ? 1 : 0; // index of the first factor, which follows
                                                                            // the added tensor
      const auto a = given[first].toTensor(), b = given[first + 1].toTensor();
      auto product = of_matrices(a, b, name == stacked_product_name);
      if (b.dim() == 1) // b may be a vector
        product.each.k = b.size(0), product.each.n = 1;
      note(product, a, b);
    }
    return nullptr;
  }

  static void end(const at::RecordFunction& called, at::ObserverContext*) {
    if (is_product(called.name()))
      --counted.within;
  }

  static void note(const stack_of_products& product, const at::Tensor& a, const at::Tensor& b) {
    const auto operations = product.operations();
    counted.into->forward += operations;
    counted.into->backward += operations * ((a.requires_grad() ? 1.0 : 0.0) + (b.requires_grad() ? 1.0 : 0.0));
    counted.into->forward_by_shape[product.each] += operations;
  }

  static thread_local state counted;
  at::CallbackHandle handle_;
};
thread_local product_count::state product_count::counted{};

} // namespace

namespace {

pass_work counted_pass(const model& net, const at::Tensor& weights, const at::Tensor& inputs, class_range classes) {
  pass_work work;
  const product_count counting(work);
  static_cast<void>(net.differentiable(weights, inputs, classes, {}));
  return work;
}

} // namespace

pass_work work_of_pass(const model& net, std::array<std::int64_t, 3> shape, std::int64_t rows, class_range classes) {
  const autograd_on with_gradients;
  const auto weights = at::zeros({1, net.size()}, at::kFloat);
  const auto inputs = at::zeros({1, rows, shape[0], shape[1], shape[2]}, at::kFloat);
  pass_work work;
  const auto reason =
      torch_error_of([&] { work = counted_pass(net, weights.detach().requires_grad_(true), inputs, classes); });
  if (!reason.empty()) { // operators of a module file may not support gradients of its buffers
    work = counted_pass(net, weights, inputs, classes);
    work.backward = 2.0 * work.forward;
  }
  return work;
}

} // namespace mneme
