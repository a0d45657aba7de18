#include "runtime/modules/row_form.hpp"
#include <ATen/ops/constant_pad_nd.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <vector>
namespace mneme {

at::Tensor in_form(const at::Tensor& rows, row_form form) {
  switch (form) {
  case row_form::numbers:
    return rows.flatten(1);
  case row_form::tokens:
    return rows.flatten(1).to(at::kLong);
  case row_form::images:
    break;
  }
  return rows;
}

at::Tensor pad_to(const at::Tensor& rows, std::int64_t count) {
  std::vector<std::int64_t> borders(static_cast<std::size_t>(2 * rows.dim()), 0); // listed from the last axis backwards
  borders.back() = count - rows.size(0);
  return at::constant_pad_nd(rows, borders);
}

std::string rows_text(const at::Tensor& rows, const module_rows& described) {
  auto text = fmt::format("of shape [{}]", fmt::join(rows.sizes(), ", "));
  if (described.form == row_form::tokens)
    text += fmt::format(" and type int64 (tokens below {})", described.tokens);
  return text;
}

} // namespace mneme
