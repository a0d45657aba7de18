/// prototype_proxy: the proxy of GLFC and LGA. It reconstructs images from the gradients of prototypes and keeps the
/// global models that classify them best.
#pragma once
#include "runtime/base/archive.hpp"
#include "runtime/method/proxy_half.hpp"
#include "strategies/lga/gradient_inversion.hpp"
namespace mneme {

// Axes: m monitor images, D features, C classes seen, L classes of the monitor images.

/// Purposes of random draws in GLFC and LGA, except those of training.
enum compensating_draws : std::uint32_t {
  inversion_draw = first_method_purpose + 40,
  score_noise_draw,
  any_model_draw,
  encoder_draw,
  perturbation_draw,
  group_draw,
};

// -- scores of models, in lga.cpp -------------------------------------------------------------------------------------

/// Noise that is added to features when models are scored.
struct feature_noise {
  /// Distribution of the noise on a feature i of variance v_i. True (paper): standard deviation scale * sqrt(v_i), and
  /// length at most 0.1 sum v. False (official): standard deviation scale * v_i^2, and squared length at most 0.1 sum
  /// v^2.
  bool as_printed = true;
  double scale = 0.15; ///< omega
  std::int64_t copies = 5;
};

/// Draws noise [D] for one row until it satisfies the bound; after 20 draws it is scaled to the bound. Zero variances
/// give zeros. @param variances [D] float64 of the row's class
[[nodiscard]] at::Tensor accepted_noise(const at::Tensor& variances, const feature_noise& how, rng_stream& stream);

/// Unbiased variances of the features of each class, in ascending order of classes: [L, D] float64. A class with one
/// row has zeros.
/// @param features [m, D] @param labels [m] int64
[[nodiscard]] at::Tensor variances_by_class(const at::Tensor& features, const at::Tensor& labels);

/// omega_t = (C_old omega_(t-1) + sum over new classes of Tr(cov_c) / d) / (C_old + C_new) (eq. 12).
/// @param scale omega_(t-1) @param old_classes C_old; 0 in the first task
/// @param traces [C_new] float64, Tr(cov_c) / d
[[nodiscard]] double next_noise_scale(double scale, std::int64_t old_classes, const at::Tensor& traces);
/// Tracks omega over a run. Because the images of a task arrive in several rounds, every update starts from omega and
/// the number of classes at the start of the task. So no class counts twice.
struct running_scale {
  double scale = 0.15, scale_before = 0.15;
  std::int64_t classes = 0, classes_before = 0; ///< Number of classes that each scale covers.
  void begin_task() { scale_before = scale, classes_before = classes; }
  /// @param traces [L] float64, Tr(cov_c) / d of all classes of the task that have images so far
  void learn(const at::Tensor& traces);
};

/// Accuracy of the head on noisy copies of the features, or on the features themselves if `how.copies` is 0.
/// @param features [m, D] @param labels [m] int64 @param head [C, D] weights @param bias [C]
[[nodiscard]] double monitor_score(const at::Tensor& features, const at::Tensor& labels, const at::Tensor& head,
                                   const at::Tensor& bias, const feature_noise& how, const rng_key& key);

// -- the proxy --------------------------------------------------------------------------------------------------------

/// When the best score of earlier tasks is reset.
enum class score_reset : std::uint8_t {
  every_task,
  second_task, ///< Official LGA: from the third task on, a model must beat the scores of earlier tasks.
  never,       ///< Official GLFC.
};

/// Options of the proxy.
struct proxy_options {
  bool reconstructs = true;      ///< False: the old model is a random model of its task.
  bool selects = true;           ///< False: the old model is the last model of its task.
  bool augments = true;          ///< True: models are scored on noisy copies of features.
  bool noise_as_printed = true;  ///< See feature_noise.
  bool running_scale = true;     ///< True: omega by eq. 12. False: 0.15, and from the second task on the official
                                 ///< radius.
  double noise_scale = 0.0;      ///< omega; 0: estimated.
  std::int64_t first_scored = 6; ///< Rounds of a task whose models are accepted without a score.
  score_reset reset = score_reset::every_task;
  inversion_options inversion{};
  /// True if clients send gradients of prototypes and models are scored.
  [[nodiscard]] bool scores() const noexcept { return reconstructs && selects; }
};

/// An old model in the proxy's advice.
struct old_model {
  tensors_ref weights{};    ///< Null if there is no model.
  std::int64_t classes = 0; ///< Number of classes that the model was trained on.
};
/// Old models that the proxy sends to clients.
struct old_models {
  old_model before{}; ///< Best model of the task before the latest one (B1).
  old_model latest{}; ///< Best model of the latest task (B2).
};
/// Best models of the last two tasks.
struct best_models {
  old_models chosen{};
  double best = 0.0; ///< Score of `chosen.latest`.

  /// Starts a task: the best model so far becomes B1. @param forgets resets the best score to 0
  void begin_task(bool forgets);
  /// Takes the model if its score is at least the best one. Rounds without scores offer 0.
  void offer(double score, const old_model& now);
};
/// Reads the models from the proxy's advice. Returns no models for null advice.
[[nodiscard]] old_models read_advice(const tensors_ref& advice);

/// The encoder, shared by proxy and clients.
struct shared_encoder {
  gradient_encoder encoder;
  at::Tensor weights{}; ///< [encoder.size()]
};

/// The proxy half.
class prototype_proxy final : public proxy_half {
public:
  prototype_proxy(model_ref net, std::uint64_t seed, std::shared_ptr<const shared_encoder> known,
                  const proxy_options& options);
  void receive(const delivery& in) override;
  task<tensors_ref> advise(server_context& ctx, const round_info& info, const tensors_ref& model) override;
  [[nodiscard]] std::map<std::string, double> summary_metrics() const override;
  void persist(archive& state) override;

private:
  void begin_task();
  void learn_scale(const at::Tensor& features, const at::Tensor& labels);
  void take_images(const std::vector<tensors_ref>& inversions);
  [[nodiscard]] std::vector<program_job> inversions(const round_info& info);
  void take_unscored(const round_info& info, const old_model& now);
  [[nodiscard]] compute_job scoring(const round_info& info, const old_model& now, const at::Tensor& features) const;
  [[nodiscard]] tensors_ref advice() const;

  model_ref net_;
  std::uint64_t seed_;
  std::shared_ptr<const shared_encoder> known_;
  proxy_options options_;
  program_ref inversion_;

  std::vector<tensors_ref> pool_; // gradients that were not inverted yet, each of one prototype
  at::Tensor images_, labels_;    // monitor: [m, C, H, W] uint8, [m] int64
  best_models models_;
  std::int64_t tasks_ = 0;        // number of detected tasks, by gradients or by the classes seen
  std::int64_t rounds_ = 0;       // number of rounds since the last detected task
  std::int64_t classes_seen_ = 0; // number of classes of the previous model
  running_scale omega_;
  std::vector<double> starts_, ends_; // objectives of all inversions
  std::int64_t failed_ = 0;
};

} // namespace mneme
