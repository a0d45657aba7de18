/// row_form: the shape and type in which a module is given the rows of a run.
#pragma once
#include <ATen/core/Tensor.h>
#include <array>
#include <cstdint>
#include <string>
namespace mneme {

enum class row_form : std::uint8_t {
  images,  ///< [B, C, H, W] float32
  numbers, ///< [B, F] float32: a table, or features
  tokens   ///< [B, T] int64, as torch.nn.Embedding reads them
};

struct module_rows {
  std::array<std::int64_t, 3> input{}; ///< C, H, W of a row as the run holds it; 1, 1, F of numbers and of tokens.
  row_form form = row_form::images;
  std::int64_t tokens = 0; ///< row_form::tokens: they lie below this.
};

/// The form in which rows of this shape are given to a module. @param tokens 0: they hold pixels or numbers
[[nodiscard]] row_form form_of_rows(const std::array<std::int64_t, 3>& shape, std::int64_t tokens);
/// Rows of a run as forward() takes them. @param rows [B, C, H, W] float32
[[nodiscard]] at::Tensor in_form(const at::Tensor& rows, row_form form);
/// These rows, in form, filled up with zeros to `count` rows.
[[nodiscard]] at::Tensor padded_to(const at::Tensor& rows, std::int64_t count);
/// "of shape [16, 30] and type int64 (tokens below 500)", for errors.
[[nodiscard]] std::string rows_text(const at::Tensor& rows, const module_rows& described);

} // namespace mneme
