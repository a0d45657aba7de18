/// run_data: loads the rows of a run.
#pragma once
#include "runtime/base/diagnostic.hpp"
#include "runtime/data/data_sources.hpp"
#include "runtime/settings/scenario.hpp"
namespace mneme {

/// Loads the rows of the run. Fails with the errors of the device, the clients' memory and the rows. If there are none,
/// fails with the errors of keys that do not fit the rows: model.backbone, training.augment and tasks.transform.
/// @param given result of load_data(); null: load it
/// @param values row_values::zeros for validation
/// @param device result of resolve_device()
[[nodiscard]] expected<raw_data> load_run_data(const scenario& settings, const raw_data* given, row_values values,
                                               const tl::expected<std::string, std::string>& device);

} // namespace mneme
