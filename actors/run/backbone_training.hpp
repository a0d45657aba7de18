/// backbone_training: preliminary run for model.backbone. The preliminary run trains a net once, on classes that the
/// tasks do not use, and caches the weights by digest.
#pragma once
#include "actors/run/simulation.hpp"
namespace mneme {

struct trained_net {
  std::filesystem::path weights{};         ///< safetensors file; empty: no backbone is requested.
  std::optional<run_summary> unfinished{}; ///< Set if the training failed or was interrupted.
};

/// Validates model.backbone before anything is trained: its scenario must be readable, have the same net, and train on
/// no class of the tasks. @param data the run's data; only name, classes and domains are read
[[nodiscard]] diagnostics validate_backbone(const scenario& settings, const raw_data& data);

/// Returns the final weights of model.backbone's scenario from the cache ${MNEME_CACHE:-$HOME/.cache/mneme}/backbones.
/// If they are missing, runs the scenario. Only one process at a time trains a net; others wait for it. Fails for an
/// invalid scenario, and if the cache cannot be written.
[[nodiscard]] expected<trained_net> load_or_train_backbone(const scenario& settings, const run_options& options);

} // namespace mneme
