/// module_probe: probes a module on synthetic rows before a run uses it.
#pragma once
#include "runtime/modules/module_graph.hpp"
#include "runtime/modules/row_form.hpp"
#include <tl/expected.hpp>
namespace mneme {

/// The synthetic rows of a probe.
struct probe_rows {
  module_rows rows{};
  std::int64_t most = 0; ///< Largest number of rows per call; 0: the default of 16.
};

/// The rows for a probe: `rows`, or if `own` is true, the images that the module declares. Fails with an error text if
/// the module declares none, or declares invalid sizes.
[[nodiscard]] tl::expected<probe_rows, std::string> rows_of_trial(const module_graph& graph, const module_rows& rows,
                                                                  bool own);

/// Properties of a module that a probe has measured.
struct probe_result {
  std::int64_t width = 0;        ///< D, the number of values per row that forward() returns.
  std::int64_t rows_at_once = 0; ///< Rows per call. A row's bits do not depend on its position in the call.
  std::int64_t row_bytes = 0;    ///< Bytes of all operator results for one row.
};

struct probe_requirements {
  bool trained = false;      ///< True: the parameters are trained, so a gradient must reach at least one of them.
  bool training = false;     ///< See module_requirements.
  std::int64_t rows_max = 0; ///< Largest number of rows per call; 0: the default of 16.
};

/// Probes the graph with synthetic rows on `device`. Calls take several rows, or a single row if a row's bits depend on
/// its position. Returns all reasons if results are not [B, D] float32 and finite, differ between calls, or depend on
/// other rows of the call. A write to a tensor of the module is also an error.
[[nodiscard]] tl::expected<probe_result, std::vector<std::string>> probe_module(const module_graph& graph,
                                                                                const module_rows& rows,
                                                                                const at::Device& device,
                                                                                const probe_requirements& requirements);

} // namespace mneme
