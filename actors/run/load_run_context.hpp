/// load_run_context: from a scenario to everything its run reads; all bad input is found here.
#pragma once
#include "actors/protocol/run_context.hpp"
#include "runtime/base/diagnostic.hpp"
namespace mneme {

struct raw_data;

/// What becomes of a world.
enum class run_context_use {
  run,
  check, ///< Nothing is run: weights from files are read, but none are drawn, which takes a large net seconds.
};

/// How a context is loaded.
struct run_context_request {
  std::shared_ptr<const partition>* split = nullptr; ///< Receives the partition, for partition.csv; may be null.
  run_context_use use = run_context_use::run;
  const raw_data* data = nullptr;     ///< What load_data() would give; null: it is loaded.
  diagnostics* warnings = nullptr;    ///< Receives what is well and can hardly be meant; may be null.
  std::string* data_digest = nullptr; ///< Receives the digest of the data set; may be null.
  std::filesystem::path backbone{};   ///< What model.backbone's scenario has trained; empty: nothing is read.
};

/// Loads the data, splits them into tasks and over clients, builds and initialises the model, and
/// prepares the method.
[[nodiscard]] expected<std::shared_ptr<run_context>> load_run_context(const scenario& settings,
                                                                      const run_context_request& request);

} // namespace mneme
