/// row_form: the shape and type in which a module receives the rows of a run.
#pragma once
#include <ATen/core/Tensor.h>
#include <array>
#include <cstdint>
#include <string>
namespace mneme {

enum class row_form : std::uint8_t {
  images,  ///< [B, C, H, W] float32
  numbers, ///< [B, F] float32: table rows or features
  tokens   ///< [B, T] int64 token ids, for torch.nn.Embedding
};

struct module_rows {
  std::array<std::int64_t, 3> input{}; ///< C, H, W of a row in the run; [1, 1, F] for numbers and tokens.
  row_form form = row_form::images;
  std::int64_t tokens = 0; ///< row_form::tokens: exclusive upper bound of token ids.
};

/// The row_form for rows of this shape. @param tokens exclusive upper bound of token ids; 0: rows are not tokens
[[nodiscard]] row_form form_of_rows(const std::array<std::int64_t, 3>& shape, std::int64_t tokens);
/// Converts rows of a run to the form that forward() takes. @param rows [B, C, H, W] float32
[[nodiscard]] at::Tensor in_form(const at::Tensor& rows, row_form form);
/// Appends rows of zeros until there are `count` rows. @param rows in any row_form
[[nodiscard]] at::Tensor padded_to(const at::Tensor& rows, std::int64_t count);
/// Describes rows for errors: "of shape [16, 30] and type int64 (tokens below 500)".
[[nodiscard]] std::string rows_text(const at::Tensor& rows, const module_rows& described);

} // namespace mneme
