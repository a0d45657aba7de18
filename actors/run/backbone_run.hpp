/// backbone_run: the run before a run that model.backbone asks for: a net is trained on classes that the tasks do not
/// use, once, and kept by its digest.
#pragma once
#include "actors/run/simulation.hpp"
namespace mneme {

struct trained_net {
  std::filesystem::path weights{};         ///< safetensors; empty: none is asked for.
  std::optional<run_summary> unfinished{}; ///< The training failed or was interrupted.
};

/// What is wrong with model.backbone, before anything is trained: a scenario that cannot be read, another net, classes
/// that the tasks use, too. @param data of the run: its classes and domains are read
[[nodiscard]] diagnostics wrong_backbone(const scenario& settings, const raw_data& data);

/// The weights that model.backbone's scenario ends with, from ${MNEME_CACHE:-$HOME/.cache/mneme}/backbones, where it is
/// run if they are not there yet. One process at a time trains a net, and others wait for it.
[[nodiscard]] expected<trained_net> trained_backbone(const scenario& settings, const run_options& options);

} // namespace mneme
