/// row_form: the shape and type in which a module is given the rows of a run.
#pragma once
#include "runtime/models/user_module.hpp"
namespace mneme {

struct module_rows {
  std::array<std::int64_t, 3> input{}; ///< C, H, W of a row as the run holds it; 1, 1, F of numbers and of tokens.
  row_form form = row_form::images;
  std::int64_t tokens = 0; ///< row_form::tokens: they lie below this.
};

/// Rows of a run as forward() takes them. @param rows [B, C, H, W] float32
[[nodiscard]] at::Tensor in_form(const at::Tensor& rows, row_form form);
/// These rows, in form, filled up with zeros to `count` rows.
[[nodiscard]] at::Tensor padded_to(const at::Tensor& rows, std::int64_t count);
/// "of shape [16, 30] and type int64 (tokens below 500)", for errors.
[[nodiscard]] std::string rows_text(const at::Tensor& rows, const module_rows& described);

} // namespace mneme
