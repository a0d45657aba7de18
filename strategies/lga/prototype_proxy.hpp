/// prototype_proxy: the proxy of GLFC and LGA: it makes images from the gradients of prototypes, and keeps the models
/// that know them best.
#pragma once
#include "runtime/base/archive.hpp"
#include "runtime/method/proxy_half.hpp"
#include "strategies/lga/gradient_inversion.hpp"
namespace mneme {

// Axes: m monitor images, D features, C classes seen, L classes that the images have.

/// What GLFC and LGA draw besides their training.
enum compensating_draws : std::uint32_t {
  inversion_draw = first_method_purpose + 40,
  score_noise_draw,
  any_model_draw,
  encoder_draw,
  perturbation_draw,
  group_draw,
};

// -- how models are scored, in lga.cpp --------------------------------------------------------------------------------

struct feature_noise {
  /// Noise of feature i, whose variance is v_i: of standard deviation sqrt v_i times the scale, and its length at most
  /// 0.1 sum v (as printed); as released of standard deviation v_i^2 times it, its squared length at most 0.1 sum v^2.
  bool as_printed = true;
  double scale = 0.15; ///< omega
  std::int64_t copies = 5;
};

/// Noise for one row of a class whose features have `variances` [D] float64: redrawn until it keeps its bound, and
/// after 20 draws scaled onto it. All zeros where nothing varies.
[[nodiscard]] at::Tensor accepted_noise(const at::Tensor& variances, const feature_noise& how, rng_stream& stream);

/// Unbiased variances of the features of each class: [L, D] float64, zeros for a class with one row; classes ascend.
/// @param features [m, D] @param labels [m] int64
[[nodiscard]] at::Tensor variances_by_class(const at::Tensor& features, const at::Tensor& labels);

/// omega_t = (C_old omega_(t-1) + sum over new classes of Tr(cov_c) / d) / (C_old + C_new) (eq. 12).
/// @param scale omega_(t-1) @param old_classes C_old; 0: nothing was before
/// @param traces [C_new] float64, Tr(cov_c) / d
[[nodiscard]] double next_noise_scale(double scale, std::int64_t old_classes, const at::Tensor& traces);
/// omega over a run. Images of a task come in several rounds: whatever is learnt within it follows from omega and the
/// classes as they were when it began, so that no class counts twice.
struct running_scale {
  double scale = 0.15, scale_before = 0.15;
  std::int64_t classes = 0, classes_before = 0; ///< That `scale` and `scale_before` are means over.
  void begin_task() { scale_before = scale, classes_before = classes; }
  /// @param traces [L] float64: of all classes of the task that there are images of by now
  void learn(const at::Tensor& traces);
};

/// The share of right answers of the head over noisy copies of the features; over the features themselves where `how`
/// has no copies. @param head [C, D] weights @param bias [C]
[[nodiscard]] double monitor_score(const at::Tensor& features, const at::Tensor& labels, const at::Tensor& head,
                                   const at::Tensor& bias, const feature_noise& how, const rng_key& key);

// -- the proxy --------------------------------------------------------------------------------------------------------

/// When the best score of the tasks before is forgotten.
enum class best_reset : std::uint8_t {
  every_task,
  second_task, ///< As LGA's released program has it: from the third task on a worse model is never taken.
  never,       ///< As GLFC's.
};

struct proxy_options {
  bool reconstructs = true;      ///< Else the old model is any of its task, drawn by key.
  bool selects = true;           ///< Else it is the last of its task.
  bool augments = true;          ///< Models are scored on noisy copies of features.
  bool noise_as_printed = true;  ///< feature_noise
  bool running_scale = true;     ///< omega by eq. 12; else 0.15, and from the second task on a radius as released.
  double noise_scale = 0.0;      ///< omega; 0: it is learnt.
  std::int64_t first_scored = 6; ///< Rounds of a task whose models are taken without a score.
  best_reset reset = best_reset::every_task;
  inversion_options inversion{};
  /// Gradients of prototypes are sent, and models scored.
  [[nodiscard]] bool scores() const noexcept { return reconstructs && selects; }
};

/// What the proxy tells clients, and what they read of it.
struct old_model {
  tensors_ref weights{};    ///< Null: there is none.
  std::int64_t classes = 0; ///< That it had seen.
};
struct old_models {
  old_model before{}; ///< The best of the task before the latest one that was heard of (B1),
  old_model latest{}; ///< and of that one (B2).
};
/// Keeps the best models of the last two tasks.
struct best_models {
  old_models chosen{};
  double best = 0.0; ///< Score of the latest one.

  /// Another task begins: B1 is what was best until now. @param forgets the best score is no measure for it
  void begin_task(bool forgets);
  /// Ties go to the later model; rounds without a score, 0, count as ties with nothing.
  void offer(double score, const old_model& now);
};
[[nodiscard]] old_models read_advice(const tensors_ref& advice);

/// Settings that the proxy shares with clients.
struct shared_encoder {
  gradient_encoder encoder;
  at::Tensor weights{}; ///< [encoder.size()]
};

class prototype_proxy final : public proxy_half {
public:
  prototype_proxy(model_ref net, std::uint64_t seed, std::shared_ptr<const shared_encoder> known,
                  const proxy_options& with);
  void receive(const delivery& in) override;
  task<tensors_ref> advise(server_context& ctx, const round_place& place, const tensors_ref& model) override;
  [[nodiscard]] std::map<std::string, double> figures() const override;
  void persist(archive& state) override;

private:
  void begin_task();
  void learn_scale(const at::Tensor& features, const at::Tensor& labels);
  void take_images(const std::vector<tensors_ref>& inversions);
  [[nodiscard]] std::vector<program_job> inversions(const round_place& place);
  void take_unscored(const round_place& place, const old_model& now);
  [[nodiscard]] compute_job scoring(const round_place& place, const old_model& now, const at::Tensor& features) const;
  [[nodiscard]] tensors_ref advice() const;

  model_ref net_;
  std::uint64_t seed_;
  std::shared_ptr<const shared_encoder> known_;
  proxy_options with_;
  program_ref inversion_;

  std::vector<tensors_ref> pool_; // gradients of one prototype each, since the last step
  at::Tensor images_, labels_;    // monitor: [m, C, H, W] uint8, [m] int64
  best_models models_;
  std::int64_t tasks_ = 0;        // that were heard of: by gradients, or without them by the classes seen
  std::int64_t rounds_ = 0;       // since the last one
  std::int64_t classes_seen_ = 0; // by the model before
  running_scale omega_;
  std::vector<double> starts_, ends_; // objectives of all inversions
  std::int64_t failed_ = 0;
};

} // namespace mneme
