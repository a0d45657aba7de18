/// compensating: what GLFC and LGA have in common: clients that find out by themselves that a task has begun, keep
/// exemplars of the one before, weigh rows by how much they are forgotten, and learn from an old model that a proxy
/// chooses.
///
/// Dong et al. 2022, "Federated Class-Incremental Learning" (GLFC), and Dong et al. 2023, "No One Left Behind" (LGA,
/// TPAMI). The papers write softmax and per-task terms; the released programs train sigmoids with a cumulative
/// grouping. Both are here.
#pragma once
#include "strategies/lga/prototype_proxy.hpp"
#include "strategies/shared/averaging.hpp"
#include "strategies/shared/exemplar_selection.hpp"
namespace mneme {

// Axes: B rows of a step, C classes seen, O of them old (the teacher's), n rows of a client.

// -- what clients minimise, in lga.cpp and glfc.cpp -------------------------------------------------------------------

/// The probability behind classification, and its loss.
enum class class_likelihood : std::uint8_t {
  softmax, ///< Cross-entropy of a row.
  sigmoid, ///< Binary cross-entropy, a mean over the C classes.
};

/// How rows are weighed by their gradient magnitudes.
enum class gradient_weighting : std::uint8_t {
  none,       ///< Not at all.
  per_task,   ///< LGA: by the mean of their task.
  cumulative, ///< LGA as released: old rows by the sum over k of w_k, of all old tasks up to k, then within [0.5, 5].
  old_new,    ///< GLFC: by the mean of old rows, or of new ones.
};

/// What the teacher adds.
enum class old_knowledge : std::uint8_t {
  mixed, ///< The label with its old classes replaced by the teacher's probabilities (L_SD).
  icarl, ///< Sigmoids of the old classes alone (iCaRL, Rebuffi et al. 2017).
};

struct forgetting_terms {
  class_likelihood likelihood = class_likelihood::softmax;
  gradient_weighting weighting = gradient_weighting::per_task;
  old_knowledge distillation = old_knowledge::mixed;
  bool weighs_labels = true, weighs_distillation = true; ///< Rows of a term are weighed, or all alike.
  double label_factor = 1.0; ///< Multiplies the labels' term where there is a teacher; without one it is 1.
  double distillation_factor = 1.0;
};

/// What a client knows of its rows, in train_job::side.
struct forgetting_side {
  std::vector<std::int64_t> group_of_class{}; ///< [classes of the run] the old task of a memorised class, or -1: new.
  std::int64_t old_tasks = 0;                 ///< Tasks before the present one.
  double exponent = 1.0; ///< a of |V|^a: C_old / (C_old + C_new), or as released t / (t + 1); GLFC 1.
};
[[nodiscard]] tensors_ref as_side(const forgetting_side& known);

/// |V| of each row: the gradient of the loss at the label's logit, |p_y - 1|. @param logits [B, C]
/// @param labels [B], -1 where padded. Returns [B] float64, 0 where padded.
[[nodiscard]] at::Tensor gradient_magnitudes(const at::Tensor& logits, const at::Tensor& labels, class_likelihood kind);

/// The rows' weights; they carry no gradient. @param magnitudes [B] float64, |V|^a
/// @param groups [B] int64: the old task of the row, -1 if it is new, less if it is padded.
/// Returns [B] float64, 0 where padded.
[[nodiscard]] at::Tensor row_weights(const at::Tensor& magnitudes, const at::Tensor& groups, std::int64_t old_tasks,
                                     gradient_weighting kind);

/// values / mean of the values in `group`, 0 elsewhere; 1 in a group whose mean is 0. @param group [B] bool
[[nodiscard]] at::Tensor relative_to_mean(const at::Tensor& magnitudes, const at::Tensor& group);
/// row_weights() of GLFC.
[[nodiscard]] at::Tensor old_new_weights(const at::Tensor& magnitudes, const at::Tensor& groups);

/// The label's one-hot row with its first O entries replaced by the teacher's probabilities: [B, C].
/// @param taught [B, O] the teacher's logits
[[nodiscard]] at::Tensor mixed_targets(const at::Tensor& taught, const at::Tensor& labels, std::int64_t classes,
                                       class_likelihood kind);

/// The objective of a client's round; sides are those of as_side(). A job without a teacher has the labels' term alone.
[[nodiscard]] loss_ref forgetting_objective(const forgetting_terms& terms);

// -- how clients find out that a task begins --------------------------------------------------------------------------

/// Mean over rows of the entropy of softmax(logits), in nats: -sum p ln(p + 1e-5), as the released programs have it.
/// @param logits [n, C], the classes seen; 0 where n is 0
[[nodiscard]] double mean_entropy(const at::Tensor& logits);
/// A client takes it that a task begins where its entropy rises from `before`, 0 in its first round, to `now` by more
/// than the threshold; a rise of exactly that is enough if `included`.
[[nodiscard]] constexpr bool begins_task(double before, double now, double threshold, bool included) noexcept {
  const double rise = now - before;
  return included ? rise >= threshold : rise > threshold;
}

// -- how they train ---------------------------------------------------------------------------------------------------

enum class rate_schedule : std::uint8_t {
  scenario,         ///< That of [training].
  code_quirk,       ///< A decay holds for the rest of its round only, because each round makes a new optimizer.
  persistent_decay, ///< A decay holds for the rest of the task.
};

/// So many epochs at one rate, as a factor of the first.
struct rate_stretch {
  std::int64_t epochs = 0;
  double factor = 1.0;
  bool operator==(const rate_stretch&) const = default;
};

/// The stretches of a round, in their order. Epoch e of round r of a task is the e' = `epochs` r + e -th of the task;
/// the rate is divided by 5, 25 and 125 when e' is 100, 150 and 180 (mod 200), as the released programs have it.
[[nodiscard]] std::vector<rate_stretch> rates_of_round(rate_schedule kind, std::int64_t round_of_task,
                                                       std::int64_t epochs);

// -- the method -------------------------------------------------------------------------------------------------------

/// Where the exponent a of |V|^a comes from.
enum class exponent_rule : std::uint8_t {
  own_classes, ///< C_old / (C_old + C_new), counted at the client.
  tasks,       ///< t / (t + 1), where t tasks were before (as released).
  one,
};

/// What a client trains on whose task is an old one, while others are at the newest (Z_o of the paper).
enum class old_client_rows : std::uint8_t {
  full,      ///< The rows of its task, as released.
  exemplars, ///< Exemplars alone, also of its task, as the paper says.
};
/// How often clients are dealt anew to those that rest on old classes and the others.
enum class regrouping : std::uint8_t {
  task,  ///< With each task, as released: tasks.staying_share of them keep their rows.
  round, ///< In each round, as the paper says: that share of those who have exemplars sees nothing else.
};
/// The clients that cohorts are drawn from.
enum class cohort_pool : std::uint8_t {
  growing, ///< Everybody who is enrolled.
  fixed,   ///< Those of the first task: who comes later is never drawn, as LGA's released program has it.
};

struct compensating_options {
  forgetting_terms terms{};
  exponent_rule exponent = exponent_rule::own_classes;
  double threshold = 1.2;          ///< Nats by which the entropy has to rise.
  bool threshold_included = true;  ///< A rise of exactly that is enough (as printed).
  std::int64_t memory_rows = 2000; ///< Exemplars of a client.
  exemplar_choice choice = exemplar_choice::greedy;
  rate_schedule rates = rate_schedule::scenario;
  bool perturbs = true; ///< Prototypes are moved before they are encoded,
  prototype_perturbation perturbation = prototype_perturbation::pixels; ///< like this.
  old_client_rows old_clients = old_client_rows::full;
  regrouping regroup = regrouping::task;
  cohort_pool pool = cohort_pool::growing;
  proxy_options proxy{};
};

/// [training] of the presets. The papers say 20 epochs, and nothing of batches and augmentation.
inline constexpr const char* printed_training =
    "[training]\nepochs = 20\nbatch = 128\nlearning_rate = 0.1\nmomentum = 0.9\nweight_decay = 1e-5\n"
    "augment = \"crop-flip-jitter\"\n";
inline constexpr const char* released_training =
    "[training]\nepochs = 20\nbatch = 128\nlearning_rate = 2.0\nweight_decay = 1e-5\n"
    "augment = \"crop-flip-jitter\"\n";

class compensating_method : public averaging_method {
public:
  [[nodiscard]] method_needs needs() const override {
    return {.round_barrier = true,
            .has_proxy = true,
            .blind_clients = true,
            .own_groups = options().regroup == regrouping::round};
  }
  [[nodiscard]] diagnostics check(const method_setup& setup) const override;
  void prepare(const method_setup& setup) override;
  task<client_result> client_round(client_context& ctx, const broadcast& in) const override;
  task<client_result> client_look(client_context& ctx, const broadcast& in) const override;
  [[nodiscard]] std::unique_ptr<server_half> make_server() const override;
  [[nodiscard]] std::unique_ptr<proxy_half> make_proxy() const override;

protected:
  /// The options that the method's keys come to.
  [[nodiscard]] virtual compensating_options options() const = 0;
  /// Binds the keys that both methods have.
  static void shared_keys(key_table& table, compensating_options& to);
  [[nodiscard]] loss_ref objective() const override { return forgetting_objective(options().terms); }

private:
  struct client_memory;
  struct finding;
  [[nodiscard]] task<finding> look(client_context& ctx, const broadcast& in, tensors_ref weights) const;
  [[nodiscard]] bool rests_on_exemplars(const client_context& ctx, const client_memory& memory) const;
  [[nodiscard]] bool is_left_behind(const client_context& ctx, const broadcast& in) const;
  [[nodiscard]] program_job leaving_prototypes(const client_context& ctx, const broadcast& in,
                                               const tensors_ref& weights, const extract_output& encoded) const;
  [[nodiscard]] train_job training(const client_context& ctx, const broadcast& in, const finding& after) const;
  [[nodiscard]] sample_view prototypes_of(const client_context& ctx, const at::Tensor& features) const;
  [[nodiscard]] std::int64_t task_of_class(std::int64_t label) const;

  compensating_options with_;
  std::shared_ptr<const shared_encoder> known_;
  program_ref prototypes_;
};

} // namespace mneme
