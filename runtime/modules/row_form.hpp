/// row_form: the shape and type in which a module receives the rows of a run.
#pragma once
#include "runtime/models/user_module.hpp"
namespace mneme {

struct module_rows {
  std::array<std::int64_t, 3> input{}; ///< C, H, W of a row in the run; [1, 1, F] for numbers and tokens.
  row_form form = row_form::images;
  std::int64_t tokens = 0; ///< row_form::tokens: exclusive upper bound of token ids.
};

/// Converts rows of a run to the form that forward() takes. @param rows [B, C, H, W] float32
[[nodiscard]] at::Tensor in_form(const at::Tensor& rows, row_form form);
/// Appends rows of zeros until there are `count` rows. @param rows in any row_form
[[nodiscard]] at::Tensor pad_to(const at::Tensor& rows, std::int64_t count);
/// Describes rows for errors: "of shape [16, 30] and type int64 (tokens below 500)".
[[nodiscard]] std::string rows_text(const at::Tensor& rows, const module_rows& described);

} // namespace mneme
