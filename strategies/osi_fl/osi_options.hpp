/// osi_options: keys of OSI-FL and their validation.
#pragma once
#include "strategies/osi_fl/diffusion_files.hpp"
#include "strategies/osi_fl/latent_generator.hpp"
namespace mneme {

/// Values of all keys.
struct osi_options {
  enum class run_mode : std::uint8_t { osi_fl, oscar, oscar_r, oscar_il };
  enum class condition_kind : std::uint8_t { embed512, sd77x768 };
  enum class retention : std::uint8_t { gradient_norm, loss, random, herding };
  enum class score_moment : std::uint8_t { before, after };
  enum class score_view : std::uint8_t { plain, augmented };
  enum class loss_classes : std::uint8_t { opened, all };
  enum class frozen_norm : std::uint8_t { running, batch };
  enum class kept_epoch : std::uint8_t { last, best };
  enum class change_penalty : std::uint8_t { sum, tensor_means };

  run_mode mode = run_mode::osi_fl;
  condition_kind condition = condition_kind::embed512;
  std::int64_t p = 5;
  retention criterion = retention::gradient_norm;
  score_moment moment = score_moment::before;
  score_view view = score_view::plain;
  loss_classes classes = loss_classes::opened;
  frozen_norm norm = frozen_norm::running;
  change_penalty penalty = change_penalty::sum;
  kept_epoch epoch = kept_epoch::last;
  bool weighs_tasks = true; // true: eq. 16; false: all rows have equal weights
  double lambda = 0.1;
  std::int64_t shown_images = 10; // number of images per class in samples.png
  generator_settings generator{};
  diffusion_files parts{};
  std::vector<std::int64_t> shape{}; // tokens and width of a condition; empty: by `condition`
  std::filesystem::path cache{};     // cache folder for trained generators; empty: no cache

  [[nodiscard]] bool uses_diffusion_parts() const { return condition == condition_kind::sd77x768; }
  [[nodiscard]] bool captions() const { return uses_diffusion_parts() || parts.describes(); }
  [[nodiscard]] condition_shape condition_numbers() const {
    if (shape.size() == 2)
      return {.tokens = shape[0], .width = shape[1]};
    return uses_diffusion_parts() ? condition_shape{.tokens = 77, .width = 768} : condition_shape{};
  }
  [[nodiscard]] std::int64_t retained() const { return mode == run_mode::osi_fl ? p : 0; }
  [[nodiscard]] bool keeps_all_rows() const { return mode == run_mode::oscar; }

  void keys(key_table& table);
  [[nodiscard]] static std::vector<preset> presets();
  [[nodiscard]] diagnostics check(const method_setup& setup) const;
};

} // namespace mneme
