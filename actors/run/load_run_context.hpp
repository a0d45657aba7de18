/// load_run_context: loads and validates all inputs of a run from its scenario.
#pragma once
#include "actors/protocol/run_context.hpp"
#include "runtime/base/diagnostic.hpp"
namespace mneme {

struct raw_data;

/// Purpose for which a context is loaded.
enum class run_context_use {
  run,
  check, ///< Validation only. Reads weights from files but draws none, because drawing takes seconds for a large net.
};

/// Options of load_run_context().
struct run_context_request {
  std::shared_ptr<const partition>* split = nullptr; ///< Receives the partition, for partition.csv; may be null.
  run_context_use use = run_context_use::run;
  const raw_data* data = nullptr;     ///< Result of load_data(); null: load it.
  diagnostics* warnings = nullptr;    ///< Receives the warnings; may be null.
  std::string* data_digest = nullptr; ///< Receives the digest of the data set; may be null.
  std::filesystem::path backbone{};   ///< Weights of model.backbone's scenario; empty: none.
};

/// Loads the data, splits them into tasks and over clients, builds and initializes the model, and prepares the method.
/// Fails with all errors that were found.
[[nodiscard]] expected<std::shared_ptr<run_context>> load_run_context(const scenario& settings,
                                                                      const run_context_request& request);

} // namespace mneme
