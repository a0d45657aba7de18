/// frozen_encoder: an encoder that the server trains once, before the first round.
#pragma once
#include "runtime/base/archive.hpp"
#include "runtime/method/strategy.hpp"
#include "runtime/models/embedding_model.hpp"
namespace mneme {

/// The whole net is trained on the given rows. Then its classifier is discarded.
class frozen_encoder {
public:
  struct options {
    double beta = 1e-5;          ///< Weight of the KL divergence, summed over the embedding; normal encoders only.
    double learning_rate = 1e-3; ///< Learning rate of Adam.
    std::int64_t epochs = 10;    ///< 0: the encoder keeps its initial weights.
  };
  /// @param setup setup of the run; its net must be an embedding_model
  frozen_encoder(const method_setup& setup, options options);

  /// Trains the encoder and measures its embeddings. Warns if their KL divergence is low.
  task<void> train(server_context& ctx, sample_view samples, class_range classes);

  [[nodiscard]] const embedding_model& net() const noexcept { return *net_; }
  /// Weights of the encoder without classifier, which clients receive as initial payload.
  [[nodiscard]] const tensors_ref& weights() const noexcept { return weights_; }
  /// Returns a predictor of the whole net with this classifier [P].
  /// @param sampled key of the samples that are used in tests; nullopt: tests use the means
  [[nodiscard]] predictor with_classifier(const at::Tensor& classifier, const std::optional<rng_key>& sampled) const;
  /// Adds the metrics "kl_per_sample" and "kl_per_dimension", in nats, and "sigma_mean".
  void add_figures(std::map<std::string, double>& to) const;
  void persist(archive& state) { state(whole_)(weights_)(measured_)(kl_nats_)(sigma_mean_); }

private:
  void freeze(const at::Tensor& whole);
  void measure(server_context& ctx, const at::Tensor& features);

  std::shared_ptr<const embedding_model> net_;
  model_ref as_model_;
  method_setup setup_;
  options options_;
  tensors_ref whole_, weights_; // weights of the whole net, and of its encoder
  bool measured_ = false;
  double kl_nats_ = 0.0, sigma_mean_ = 0.0;
};

/// Returns `setup` for the classifier only. Its initial weights are those of the classifier within the whole net.
[[nodiscard]] method_setup classifier_setup(const method_setup& setup);
/// Returns the net as an embedding_model, or null if it is another model.
[[nodiscard]] std::shared_ptr<const embedding_model> as_embedding_model(const model_ref& net);

} // namespace mneme
