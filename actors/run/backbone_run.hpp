/// backbone_run: the preceding run for model.backbone. It trains a net once, on classes that the tasks do not use, and
/// caches the weights by digest.
#pragma once
#include "actors/run/simulation.hpp"
namespace mneme {

struct trained_net {
  std::filesystem::path weights{};         ///< safetensors; empty if no backbone is requested.
  std::optional<run_summary> unfinished{}; ///< Set if the training failed or was interrupted.
};

/// Validates model.backbone before anything is trained: the scenario can be read, has the same net, and trains on no
/// class of the tasks. @param data of the run; only its classes and domains are read
[[nodiscard]] diagnostics wrong_backbone(const scenario& settings, const raw_data& data);

/// Returns the final weights of model.backbone's scenario from the cache ${MNEME_CACHE:-$HOME/.cache/mneme}/backbones.
/// Runs the scenario if they are missing. One process at a time trains a net; others wait for it.
[[nodiscard]] expected<trained_net> trained_backbone(const scenario& settings, const run_options& options);

} // namespace mneme
