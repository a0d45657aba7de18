/// latent_generator: a small latent diffusion model that the server trains once, on public rows.
#pragma once
#include "runtime/base/archive.hpp"
#include "runtime/method/strategy.hpp"
#include "strategies/osi_fl/latent_generation.hpp"
namespace mneme {

/// Options of the training on public rows, and of sampling.
struct generator_settings {
  std::int64_t encoder_passes = 8, component_passes = 12, denoiser_passes = 40, batch = 128;
  bool matches_moments = false; ///< Maps latents to the mean and covariance of public rows of their kind.
  generation_settings sampling{};
  std::int64_t embedding = 512; ///< Length of a condition.
  std::int64_t components = 96; ///< Length of a latent; at most the number of pixels.
  program_ref describing{};     ///< Program for "embeddings" [n, E] of rows; null: an encoder is trained.
};

/// Trains the nets and makes generation jobs.
class latent_generator {
public:
  latent_generator(const method_setup& setup, const generator_settings& settings);

  /// Trains the encoder (unless `describing` is set) and computes the components at the same time. Then trains the
  /// denoiser on the encoded public rows of all tasks. A kind is a class; if tasks share classes, a kind is a class of
  /// one task.
  task<void> train(server_context& ctx);
  [[nodiscard]] bool is_trained() const noexcept { return nets_ != nullptr; }

  /// Returns "encoder" [P], the only part that clients need. @pre is_trained(), and `describing` is null
  [[nodiscard]] tensors_ref encoder() const;
  /// A job that generates images [Z, C, H, W] uint8 under a condition [E]. @pre is_trained()
  [[nodiscard]] program_job generation(const at::Tensor& condition, const rng_key& stream) const;
  /// Size of all nets in bytes; 0 before training.
  [[nodiscard]] std::int64_t bytes() const { return is_trained() ? nets_->bytes() : 0; }
  void persist(archive& state) { state(nets_); }

  /// Sizes of the nets for a run.
  [[nodiscard]] static latent_shape shape_of(const method_setup& setup, std::int64_t embedding = 512);

private:
  [[nodiscard]] rng_key stream(std::uint32_t part) const;
  [[nodiscard]] program_job embedding_job(const at::Tensor& kinds, const sample_view& samples) const;

  std::uint64_t seed_;
  std::int64_t tasks_, classes_;
  bool tasks_share_classes_;
  program_ref describing_, encoder_training_, component_analysis_, encoding_, denoiser_training_, moment_matching_,
      generation_;
  // "encoder" [P] (unless `describing` is set), "denoiser" [P], the tensors of image_components, and those of
  // moment_matching if enabled. Null before training.
  tensors_ref nets_;
};

} // namespace mneme
