/// gradient_compensation: shared base of GLFC and LGA. Clients detect new tasks, keep exemplars of earlier ones, weight
/// rows by how much they are forgotten, and distill an old model that a proxy selects.
///
/// Dong et al. 2022, "Federated Class-Incremental Learning" (GLFC), and Dong et al. 2023, "No One Left Behind" (LGA,
/// TPAMI). The papers have softmax losses and weights per task. The official programs have sigmoid losses and
/// cumulative weights. This base implements both.
#pragma once
#include "strategies/lga/prototype_proxy.hpp"
#include "strategies/shared/averaging.hpp"
#include "strategies/shared/exemplar_selection.hpp"
namespace mneme {

// Axes: B rows of a step, C classes seen, O old classes (those of the teacher), n rows of a client.

// -- the clients' loss, in lga.cpp and glfc.cpp -----------------------------------------------------------------------

/// Probability model of the classifier, and its loss.
enum class class_likelihood : std::uint8_t {
  softmax, ///< Cross-entropy of a row.
  sigmoid, ///< Binary cross-entropy, averaged over the C classes.
};

/// Weighting of rows by their gradient magnitudes.
enum class gradient_weighting : std::uint8_t {
  none,       ///< All weights are 1.
  per_task,   ///< LGA: relative to the mean of the row's task.
  cumulative, ///< Official LGA: old rows relative to tasks <= k, summed over k; in [0.5, 5].
  old_new,    ///< GLFC: relative to the mean of old rows, or of new ones.
};

/// The distillation term.
enum class distillation_kind : std::uint8_t {
  mixed, ///< One-hot labels whose old columns are the teacher's probabilities (L_SD).
  icarl, ///< The teacher's sigmoids of the old classes only (iCaRL, Rebuffi et al. 2017).
};

/// Terms of the clients' loss.
struct forgetting_terms {
  class_likelihood likelihood = class_likelihood::softmax;
  gradient_weighting weighting = gradient_weighting::per_task;
  distillation_kind distillation = distillation_kind::mixed;
  bool weighs_labels = true, weighs_distillation = true; ///< True: the rows of the term are weighted. False: all
                                                         ///< weights are 1.
  double label_factor = 1.0; ///< Factor of the label term if there is a teacher; otherwise 1.
  double distillation_factor = 1.0;
};

/// Information about a client's classes, for the auxiliary tensors of a job.
struct forgetting_context {
  std::vector<std::int64_t> group_of_class{}; ///< [classes of the run] task of each memorized class; -1: new class.
  std::int64_t old_tasks = 0;                 ///< Number of tasks before the newest one.
  double exponent = 1.0;                      ///< Exponent a of |V|^a, see exponent_rule; 1 for GLFC.
};
/// Converts the information to auxiliary tensors.
[[nodiscard]] tensors_ref to_auxiliary(const forgetting_context& known);

/// Returns |V| of each row, the gradient of the loss at the label's logit, |p_y - 1|: [B] float64, 0 for padded rows.
/// @param logits [B, C] @param labels [B], -1 for padded rows
[[nodiscard]] at::Tensor gradient_magnitudes(const at::Tensor& logits, const at::Tensor& labels, class_likelihood kind);

/// Returns the weights of the rows: [B] float64, without gradient, 0 for padded rows.
/// @param magnitudes [B] float64, |V|^a @param groups [B] int64: task of an old row, -1 for a new row, below -1 for a
/// padded row
[[nodiscard]] at::Tensor row_weights(const at::Tensor& magnitudes, const at::Tensor& groups, std::int64_t old_tasks,
                                     gradient_weighting kind);

/// Divides magnitudes in `group` by their mean; if the mean is 0, the result is 1 for the group. Rows outside the group
/// get 0.
/// @param group [B] bool
[[nodiscard]] at::Tensor divide_by_mean(const at::Tensor& magnitudes, const at::Tensor& group);
/// row_weights() of GLFC.
[[nodiscard]] at::Tensor old_new_weights(const at::Tensor& magnitudes, const at::Tensor& groups);

/// Returns one-hot labels whose first O columns are the teacher's probabilities: [B, C].
/// @param teacher_output [B, O] logits of the teacher
[[nodiscard]] at::Tensor mix_targets(const at::Tensor& teacher_output, const at::Tensor& labels, std::int64_t classes,
                                     class_likelihood kind);

/// The objective of a client's round. The job's auxiliary tensors are those of to_auxiliary(). Without a teacher the
/// objective is the label term only.
[[nodiscard]] loss_ref forgetting_objective(const forgetting_terms& terms);

// -- task detection ---------------------------------------------------------------------------------------------------

/// Mean entropy of softmax(logits) over the rows, in nats: -sum p ln(p + 1e-5), as in the official programs. Returns 0
/// if n is 0. @param logits [n, C], of the classes seen
[[nodiscard]] double mean_entropy(const at::Tensor& logits);
/// True if a client detects a new task: the entropy has risen from `before` (0 in the first round) to `now` by more
/// than `threshold`. @param included a rise of exactly `threshold` suffices
[[nodiscard]] constexpr bool begins_task(double before, double now, double threshold, bool included) noexcept {
  const double rise = now - before;
  return included ? rise >= threshold : rise > threshold;
}

// -- learning rates ---------------------------------------------------------------------------------------------------

/// Schedule of a client's learning rate.
enum class rate_schedule : std::uint8_t {
  scenario,         ///< The schedule of [training].
  code_quirk,       ///< Official: a decay of the rate ends with its round, because each round makes a new optimizer.
  persistent_decay, ///< A decay of the rate lasts until the end of the task.
};

/// Consecutive epochs with one rate, given as a factor of the initial rate.
struct rate_stretch {
  std::int64_t epochs = 0;
  double factor = 1.0;
  bool operator==(const rate_stretch&) const = default;
};

/// Returns the stretches of a round in order. With e' = `epochs` * r + e for epoch e of round r of a task, the rate is
/// divided by 5, 25 and 125 from e' = 100, 150 and 180 (mod 200) on, as in the official programs.
[[nodiscard]] std::vector<rate_stretch> rates_of_round(rate_schedule kind, std::int64_t round_of_task,
                                                       std::int64_t epochs);

// -- the method -------------------------------------------------------------------------------------------------------

/// Exponent a of |V|^a.
enum class exponent_rule : std::uint8_t {
  own_classes, ///< C_old / (C_old + C_new), counted by the client.
  tasks,       ///< t / (t + 1) after t earlier tasks (official).
  one,
};

/// Training rows of a client whose task is older than the newest one (the paper's Z_o).
enum class old_client_rows : std::uint8_t {
  full,      ///< All rows of the task, as in the official code.
  exemplars, ///< Exemplars only, also of the current task, as in the paper.
};
/// How often the group of clients that train on old classes is drawn.
enum class regrouping : std::uint8_t {
  task,  ///< In each task (official): the share tasks.keep_task_share of the clients keeps its rows.
  round, ///< In each round (paper): this share of the clients with exemplars trains on exemplars only.
};
/// Clients from which cohorts are drawn.
enum class cohort_pool : std::uint8_t {
  growing, ///< All enrolled clients.
  fixed,   ///< Clients of the first task only, as in the official LGA program.
};

/// Options of both methods.
struct gradient_compensation_options {
  forgetting_terms terms{};
  exponent_rule exponent = exponent_rule::own_classes;
  double threshold = 1.2;          ///< Rise of the entropy that signals a new task, in nats.
  bool threshold_included = true;  ///< A rise of exactly `threshold` suffices (paper).
  std::int64_t memory_rows = 2000; ///< Exemplars per client.
  exemplar_choice choice = exemplar_choice::greedy;
  rate_schedule rates = rate_schedule::scenario;
  bool perturbs = true; ///< True: prototypes are perturbed before they are encoded.
  prototype_perturbation perturbation = prototype_perturbation::pixels; ///< Used if `perturbs` is set.
  old_client_rows old_clients = old_client_rows::full;
  regrouping regroup = regrouping::task;
  cohort_pool pool = cohort_pool::growing;
  proxy_options proxy{};
};

/// Section [training] of the presets. The papers state 20 epochs, but neither batch size nor augmentation.
inline constexpr const char* printed_training =
    "[training]\nepochs = 20\nbatch = 128\nlearning_rate = 0.1\nmomentum = 0.9\nweight_decay = 1e-5\n"
    "augment = \"crop-flip-jitter\"\n";
inline constexpr const char* released_training =
    "[training]\nepochs = 20\nbatch = 128\nlearning_rate = 2.0\nweight_decay = 1e-5\n"
    "augment = \"crop-flip-jitter\"\n";

/// Base class of GLFC and LGA.
class gradient_compensation_method : public averaging_method {
public:
  [[nodiscard]] method_needs needs() const override {
    return {.round_barrier = true,
            .has_proxy = true,
            .hide_task_from_clients = true,
            .assigns_old_task_clients = options().regroup == regrouping::round};
  }
  [[nodiscard]] upload_content uploads() const override { return upload_content::weights_and_more; }
  [[nodiscard]] diagnostics check(const method_setup& setup) const override;
  void prepare(const method_setup& setup) override;
  task<client_result> client_round(client_context& ctx, const broadcast& in) const override;
  task<client_result> client_observe(client_context& ctx, const broadcast& in) const override;
  [[nodiscard]] std::unique_ptr<server_half> make_server() const override;
  [[nodiscard]] std::unique_ptr<proxy_half> make_proxy() const override;

protected:
  /// Returns the options after reading the method's keys.
  [[nodiscard]] virtual gradient_compensation_options options() const = 0;
  /// Declares the keys that both methods have.
  static void shared_keys(key_table& table, gradient_compensation_options& to);
  [[nodiscard]] loss_ref objective() const override { return forgetting_objective(options().terms); }

private:
  struct client_memory;
  struct finding;
  [[nodiscard]] task<finding> look(client_context& ctx, const broadcast& in, tensors_ref weights) const;
  [[nodiscard]] bool uses_exemplars_only(const client_context& ctx, const client_memory& memory) const;
  [[nodiscard]] bool is_on_old_task(const client_context& ctx, const broadcast& in) const;
  [[nodiscard]] program_job prototype_job(const client_context& ctx, const broadcast& in, const tensors_ref& weights,
                                          const extract_output& encoded) const;
  [[nodiscard]] train_job training(const client_context& ctx, const broadcast& in, const finding& after) const;
  [[nodiscard]] sample_view prototypes_of(const client_context& ctx, const at::Tensor& features) const;
  [[nodiscard]] std::int64_t task_of_class(std::int64_t label) const;

  gradient_compensation_options options_;
  std::shared_ptr<const shared_encoder> known_;
  program_ref prototypes_;
};

} // namespace mneme
