/// frozen_encoder: an encoder that the server trains once, before the first round, and that changes no more.
#pragma once
#include "runtime/base/archive.hpp"
#include "runtime/method/strategy.hpp"
#include "runtime/models/embedding_model.hpp"
namespace mneme {

/// The whole net is trained on the rows given; its classifier is thrown away.
class frozen_encoder {
public:
  struct options {
    double beta = 1e-5;          ///< Weighs the KL divergence, summed over the embedding; normal encoders only.
    double learning_rate = 1e-3; ///< Adam's.
    std::int64_t epochs = 10;    ///< 0: the encoder stays as it is.
  };
  /// @param setup of the run: its net is an embedding_model
  frozen_encoder(const method_setup& setup, options with);

  /// Trains it and measures how much its embeddings say; what is odd about that becomes a warning.
  task<void> train(server_context& ctx, sample_view samples, class_range classes);

  [[nodiscard]] const embedding_model& net() const noexcept { return *net_; }
  /// The weights of encoder() alone: what clients receive at first contact.
  [[nodiscard]] const tensors_ref& weights() const noexcept { return weights_; }
  /// The whole net with this classifier [P].
  [[nodiscard]] predictor with_classifier(const at::Tensor& classifier, const std::optional<rng_key>& sampled) const;
  /// Adds "kl_per_sample" and "kl_per_dimension", in nats, and "sigma_mean" to a run's figures.
  void add_figures(std::map<std::string, double>& to) const;
  void persist(archive& state) { state(whole_)(weights_)(measured_)(kl_nats_)(sigma_mean_); }

private:
  void freeze(const at::Tensor& whole);
  void measure(server_context& ctx, const at::Tensor& features);

  std::shared_ptr<const embedding_model> net_;
  model_ref as_model_;
  method_setup setup_;
  options with_;
  tensors_ref whole_, weights_; // of the net, of its encoder
  bool measured_ = false;
  double kl_nats_ = 0.0, sigma_mean_ = 0.0;
};

/// `setup` for the classifier alone, with the initial weights that the whole net has for it.
[[nodiscard]] method_setup classifier_setup(const method_setup& setup);
/// The net of the run as what it is, or null: another model.
[[nodiscard]] std::shared_ptr<const embedding_model> as_embedding_model(const model_ref& net);

} // namespace mneme
