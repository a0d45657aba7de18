/// latent_generator: a small latent diffusion model that a server trains once, on public rows, and generates with.
#pragma once
#include "runtime/base/archive.hpp"
#include "runtime/method/strategy.hpp"
#include "strategies/osi_fl/latent_generation.hpp"
namespace mneme {

/// Passes over the public rows, and what is made of the result.
struct generator_settings {
  std::int64_t encoder_passes = 8, component_passes = 12, denoiser_passes = 40, batch = 128;
  bool matches_moments = false; ///< Latents are brought to the mean and covariance of public rows of their kind.
  generation_settings sampling{};
  std::int64_t embedding = 512; ///< Numbers of a condition.
  std::int64_t components = 96; ///< The length of an image's latent, where there are as many pixels.
  program_ref describing{}; ///< Makes the "embeddings" [n, E] of rows, in place of an encoder; null: one is trained.
};

class latent_generator {
public:
  latent_generator(const method_setup& setup, const generator_settings& with);

  /// Trains the encoder and finds components, side by side (or lets others describe the rows), and then trains the
  /// denoiser on what they make of the public rows of all tasks. Kinds are classes; where tasks share their classes,
  /// classes of a task.
  task<void> train(server_context& ctx);
  [[nodiscard]] bool is_trained() const noexcept { return nets_ != nullptr; }

  /// "encoder" [P]: all that a client needs. @pre trained, nothing else describes
  [[nodiscard]] tensors_ref encoder() const;
  /// Makes images [Z, C, H, W] uint8 under a condition [E]. @pre trained
  [[nodiscard]] program_job generation(const at::Tensor& condition, const rng_key& stream) const;
  /// Bytes of all nets; 0 before they are trained.
  [[nodiscard]] std::int64_t bytes() const { return is_trained() ? nets_->bytes() : 0; }
  void persist(archive& state) { state(nets_); }

  /// The sizes of the nets for a run.
  [[nodiscard]] static latent_shape shape_of(const method_setup& setup, std::int64_t embedding = 512);

private:
  [[nodiscard]] rng_key stream(std::uint32_t part) const;
  [[nodiscard]] program_job embedding_job(const at::Tensor& kinds, const sample_view& samples) const;

  std::uint64_t seed_;
  std::int64_t tasks_, classes_;
  bool tasks_share_classes_;
  program_ref describing_, encoder_training_, component_analysis_, encoding_, denoiser_training_, moment_matching_,
      generation_;
  // "encoder" (if it is ours), "denoiser" [P each], those of image_components and, if asked for, of moment_matching;
  // null: not trained yet
  tensors_ref nets_;
};

} // namespace mneme
