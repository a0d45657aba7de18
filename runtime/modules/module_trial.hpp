/// module_trial: a module run on made rows, before a run relies on it.
#pragma once
#include "runtime/modules/module_graph.hpp"
#include "runtime/modules/row_form.hpp"
#include <tl/expected.hpp>
namespace mneme {

/// Rows that a module is tried on.
struct trial_rows {
  module_rows rows{};
  std::int64_t most = 0; ///< The most of a call; 0: as many as are usual.
};

/// `rows`, or the images that the module says itself. Fails in words if it shall say it and does not, or says too much.
[[nodiscard]] tl::expected<trial_rows, std::string> rows_of_trial(const module_graph& graph, const module_rows& rows,
                                                                  bool own);

/// How a module shall be called, as a trial has found out.
struct trial_result {
  std::int64_t width = 0;        ///< D
  std::int64_t rows_at_once = 0; ///< Rows of a call; the bits of a row do not depend on its place among them.
  std::int64_t row_bytes = 0;    ///< Bytes that the graph's operators make of one row.
};

struct trial_demands {
  bool trained = false;      ///< A gradient has to reach a parameter.
  bool training = false;     ///< As in module_demands.
  std::int64_t rows_max = 0; ///< Of a call; 0: the default.
};

/// Calls the graph with rows of this form on `device`: several at once, or one by one if a row's bits depend on its
/// place in a call. Fails with all reasons if results are not [B, D] float32 and finite, differ from call to call or
/// depend on the other rows of a call, or if tensors of the module are written to.
[[nodiscard]] tl::expected<trial_result, std::vector<std::string>> tried_module(const module_graph& graph,
                                                                                const module_rows& rows,
                                                                                const at::Device& device,
                                                                                const trial_demands& demands);

} // namespace mneme
