/// fed_cil_options: keys and presets of FedCIL, each preset value with its source line in the official code.
#pragma once
#include "runtime/method/strategy.hpp"
#include "strategies/fed_cil/gan_nets.hpp"
namespace mneme::fed_cil_method {

/// Treatment of Adam's moments between rounds.
enum class moments_rule : std::uint8_t {
  kept,      ///< Kept in the client's memory, and on the server.
  each_task, ///< Kept, but reset in a client's first round of a task.
  fresh,     ///< Reset in every round.
};

/// Options of the method.
struct options {
  gan_shape net{};
  std::int64_t steps = 400, batch = 32, consolidation_steps = 50;
  double learning_rate = 1e-4, decay = 1e-5, beta2 = 0.99, consistency = 1.0;
  bool any_fakes = false, all_classes = false, own_replay = false, pooled = false;
  bool of_images = false, normal_start = false, shuffles = false;
  moments_rule moments = moments_rule::kept;
  std::string layer{};
  std::filesystem::path feature_cache{};

  void keys(key_table& table);
};

[[nodiscard]] std::vector<preset> fed_cil_presets();

} // namespace mneme::fed_cil_method
