#include "runtime/portable/product_operators.hpp"
#include "runtime/portable/matrix_products.hpp"
#include "runtime/portable/replaced_kernels.hpp"
#include <ATen/ATen.h>
#include <stdexcept>
namespace mneme::portable {
namespace {

void expect(bool holds, const char* name, const at::Tensor& a, const at::Tensor& b) {
  if (!holds)
    throw std::runtime_error(c10::str(name, ": shapes ", a.sizes(), " and ", b.sizes(), " do not fit, or types ",
                                      a.scalar_type(), " and ", b.scalar_type(), " differ"));
}

void expect_matrices(const char* name, const at::Tensor& a, const at::Tensor& b) {
  expect(a.dim() == 2 && b.dim() == 2 && a.size(1) == b.size(0) && a.scalar_type() == b.scalar_type(), name, a, b);
}
void expect_stacks(const char* name, const at::Tensor& a, const at::Tensor& b) {
  expect(a.dim() == 3 && b.dim() == 3 && a.size(0) == b.size(0) && a.size(2) == b.size(1) &&
             a.scalar_type() == b.scalar_type(),
         name, a, b);
}

/// True if both use the same memory, so that writing one may change the other.
bool shares_memory(const at::Tensor& a, const at::Tensor& b) { return a.storage().is_alias_of(b.storage()); }

/// out = beta * added + alpha * a b, for matrices or stacks of matrices.
at::Tensor& sum_into(at::Tensor& out, const at::Tensor* added, const at::Tensor& a, const at::Tensor& b,
                     const at::Scalar& beta, const at::Scalar& alpha) {
  const bool is_stack = a.dim() == 3;
  const auto size = is_stack ? std::vector<std::int64_t>{a.size(0), a.size(1), b.size(2)}
                             : std::vector<std::int64_t>{a.size(0), b.size(1)};
  const double factor = added ? beta.toDouble() : 0.0;
  const bool is_in_place = added && added->is_same(out);
  if (!is_in_place && out.sizes() != at::IntArrayRef(size))
    out.resize_(size);
  const bool needs_room = !is_in_place && (shares_memory(out, a) || shares_memory(out, b) ||
                                           (added && factor != 0.0 && shares_memory(out, *added)));
  auto result = needs_room ? at::empty(size, out.options()) : out;
  if (added && factor != 0.0 && !is_in_place)
    result.copy_(added->expand(size));
  if (is_stack)
    for (std::int64_t k = 0; k < a.size(0); ++k)
      multiply_matrices(a.select(0, k), b.select(0, k), result.select(0, k), alpha.toDouble(), factor);
  else
    multiply_matrices(a, b, result, alpha.toDouble(), factor);
  return needs_room ? out.copy_(result) : out;
}

at::Tensor& mm_out(const at::Tensor& a, const at::Tensor& b, at::Tensor& out) {
  expect_matrices("mm", a, b);
  return sum_into(out, nullptr, a, b, 0, 1);
}
at::Tensor new_mm(const at::Tensor& a, const at::Tensor& b) {
  auto out = at::empty({0}, a.options());
  return mm_out(a, b, out);
}

at::Tensor& bmm_out(const at::Tensor& a, const at::Tensor& b, at::Tensor& out) {
  expect_stacks("bmm", a, b);
  return sum_into(out, nullptr, a, b, 0, 1);
}
at::Tensor new_bmm(const at::Tensor& a, const at::Tensor& b) {
  auto out = at::empty({0}, a.options());
  return bmm_out(a, b, out);
}

at::Tensor& addmm_out(const at::Tensor& added, const at::Tensor& a, const at::Tensor& b, const at::Scalar& beta,
                      const at::Scalar& alpha, at::Tensor& out) {
  expect_matrices("addmm", a, b);
  return sum_into(out, &added, a, b, beta, alpha);
}
at::Tensor new_addmm(const at::Tensor& added, const at::Tensor& a, const at::Tensor& b, const at::Scalar& beta,
                     const at::Scalar& alpha) {
  auto out = at::empty({0}, a.options());
  return addmm_out(added, a, b, beta, alpha, out);
}
at::Tensor& addmm_in_place(at::Tensor& added, const at::Tensor& a, const at::Tensor& b, const at::Scalar& beta,
                           const at::Scalar& alpha) {
  return addmm_out(added, a, b, beta, alpha, added);
}

at::Tensor& baddbmm_out(const at::Tensor& added, const at::Tensor& a, const at::Tensor& b, const at::Scalar& beta,
                        const at::Scalar& alpha, at::Tensor& out) {
  expect_stacks("baddbmm", a, b);
  return sum_into(out, &added, a, b, beta, alpha);
}
at::Tensor new_baddbmm(const at::Tensor& added, const at::Tensor& a, const at::Tensor& b, const at::Scalar& beta,
                       const at::Scalar& alpha) {
  auto out = at::empty({0}, a.options());
  return baddbmm_out(added, a, b, beta, alpha, out);
}
at::Tensor& baddbmm_in_place(at::Tensor& added, const at::Tensor& a, const at::Tensor& b, const at::Scalar& beta,
                             const at::Scalar& alpha) {
  return baddbmm_out(added, a, b, beta, alpha, added);
}

at::Tensor& addmv_out(const at::Tensor& added, const at::Tensor& matrix, const at::Tensor& vector,
                      const at::Scalar& beta, const at::Scalar& alpha, at::Tensor& out) {
  const auto sum = new_addmm(added.unsqueeze(-1), matrix, vector.unsqueeze(1), beta, alpha).squeeze(1);
  out.resize_(sum.sizes());
  return out.copy_(sum);
}
at::Tensor new_addmv(const at::Tensor& added, const at::Tensor& matrix, const at::Tensor& vector,
                     const at::Scalar& beta, const at::Scalar& alpha) {
  return new_addmm(added.unsqueeze(-1), matrix, vector.unsqueeze(1), beta, alpha).squeeze(1);
}
at::Tensor& addmv_in_place(at::Tensor& added, const at::Tensor& matrix, const at::Tensor& vector,
                           const at::Scalar& beta, const at::Scalar& alpha) {
  return addmv_out(added, matrix, vector, beta, alpha, added);
}
at::Tensor new_mv(const at::Tensor& matrix, const at::Tensor& vector) {
  return new_mm(matrix, vector.unsqueeze(1)).squeeze(1);
}
at::Tensor& mv_out(const at::Tensor& matrix, const at::Tensor& vector, at::Tensor& out) {
  const auto product = new_mv(matrix, vector);
  out.resize_(product.sizes());
  return out.copy_(product);
}

at::Tensor inner(const at::Tensor& a, const at::Tensor& b) {
  expect(a.dim() == 1 && a.sizes() == b.sizes() && a.scalar_type() == b.scalar_type(), "dot", a, b);
  const auto left = a.to(at::kDouble).contiguous(), right = b.to(at::kDouble).contiguous();
  const double sum = dot_product(left.const_data_ptr<double>(), right.const_data_ptr<double>(), left.numel());
  return at::full({}, sum, a.options());
}

/// Computes sums or means of rows per bag. Throws std::runtime_error for maxima, weights and padding.
std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor>
bags_of_rows(const at::Tensor& rows, const at::Tensor& indices, const at::Tensor& offsets, bool, std::int64_t mode,
             bool, const std::optional<at::Tensor>& weights, bool ends_are_given, std::int64_t padding) {
  constexpr std::int64_t mean = 1, most = 2;
  if (mode == most || (weights && weights->defined()) || padding >= 0)
    throw std::runtime_error("embedding_bag with maxima, weights or padding is not portable");
  const auto bags = offsets.numel() - (ends_are_given ? 1 : 0);
  auto out = at::zeros({bags, rows.size(1)}, rows.options());
  for (std::int64_t b = 0; b < bags; ++b) {
    const auto first = offsets[b].item<std::int64_t>();
    const auto end = b + 1 < offsets.numel() ? offsets[b + 1].item<std::int64_t>() : indices.numel();
    if (end == first)
      continue;
    const auto sum = rows.index_select(0, indices.narrow(0, first, end - first)).sum(0);
    out[b].copy_(mode == mean ? sum / static_cast<double>(end - first) : sum);
  }
  const auto none = at::empty({0}, offsets.options());
  return {out, none, none, none};
}

} // namespace

void register_products() {
  replace("aten::mm", "", &new_mm);
  replace("aten::mm", "out", &mm_out);
  replace("aten::bmm", "", &new_bmm);
  replace("aten::bmm", "out", &bmm_out);
  replace("aten::addmm", "", &new_addmm);
  replace("aten::addmm", "out", &addmm_out);
  replace("aten::addmm_", "", &addmm_in_place);
  replace("aten::baddbmm", "", &new_baddbmm);
  replace("aten::baddbmm", "out", &baddbmm_out);
  replace("aten::baddbmm_", "", &baddbmm_in_place);
  replace("aten::addmv", "", &new_addmv);
  replace("aten::addmv", "out", &addmv_out);
  replace("aten::addmv_", "", &addmv_in_place);
  replace("aten::mv", "", &new_mv);
  replace("aten::mv", "out", &mv_out);
  replace("aten::_embedding_bag_forward_only", "", &bags_of_rows);
  replace("aten::dot", "", &inner);
  replace("aten::vdot", "", &inner);
}

} // namespace mneme::portable
