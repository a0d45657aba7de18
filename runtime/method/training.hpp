/// training: options and objectives of training jobs.
#pragma once
#include "runtime/base/class_range.hpp"
#include "runtime/models/model.hpp"
#include "runtime/settings/scenario.hpp"
#include <ATen/core/Tensor.h>
#include <optional>
#include <span>
namespace mneme {

class tensor_map;

/// Result that a training job returns. All results except weights are computed at the start weights, in one pass over
/// the rows. They exclude the objective's penalty on weights and are zero for parameters that are not trained.
enum class training_result : std::uint8_t {
  weights,           ///< The trained weights.
  gradient,          ///< Gradient of the mean loss over all rows.
  squared_gradients, ///< Mean over steps of the step's squared gradient: the Fisher information of batches (Fed-EWC)
                     ///< or, with batch_rows = 1, of rows (Kirkpatrick et al. 2017).
  row_norms,         ///< Norm of each row's gradient over all trained parameters, in evaluation mode.
};

/// Selects how the replayed rows of a step pass through the net.
enum class replay_pass : std::uint8_t {
  joint,    ///< One batch with the job's own rows; batch norms use the statistics of both.
  separate, ///< A second pass after the job's own rows. Each pass uses its own batch statistics, so running statistics
            ///< are updated twice.
};

/// Outputs of a teacher that the loss reads. A teacher is a frozen net of the same kind, in evaluation mode.
struct teacher_view {
  class_range classes{};     ///< Classes of the logits to read; empty: no logits.
  bool features = false;     ///< True: reads features and the maps in training_options::maps.
  class_range only_labels{}; ///< Reads only rows of these labels, relative to the loss; empty: all rows.
  bool operator==(const teacher_view&) const = default;
};

/// Options of a training job. All of them are part of the fuse key.
struct training_options {
  optimizer_kind optimizer = optimizer_kind::sgd;
  std::int64_t epochs = 1;      ///< 0: trains nothing, but takes the virtual time of one epoch.
  std::int64_t batch_rows = 64; ///< Rows per step; 0: all rows.
  double learning_rate = 0.05;  ///< Learning rate of this round, after the schedule.
  double momentum = 0.0, weight_decay = 0.0, clip_norm = 0.0;
  augmentation_kind augment = augmentation_kind::none;
  double label_smoothing = 0.0; ///< See loss_input::label_smoothing.
  /// Skips the last step of an epoch if it has fewer than batch_rows rows, so a job with fewer rows makes no step. Used
  /// only if the result is weights.
  bool drop_last = false;
  trainable_part trained = trainable_part::all; ///< All other layers stay fixed, in evaluation mode.
  std::vector<std::string> layers{};            ///< Names of the trained layers, for trainable_part::layers.
  bool in_order = false;                        ///< True: no shuffling; rows have the job's order in every epoch.
  /// Classes that the loss covers; other head outputs stay unchanged. Empty: the loss uses only features and maps.
  class_range classes{};
  /// Number of classes, from class 0, whose head outputs keep their bits while the rest of the net is trained.
  std::int64_t held_classes = 0;
  /// Classes with trained head outputs, if fewer than the loss covers. Empty: all of `classes`.
  class_range trained_classes{};
  std::vector<layer_rate> rates{}; ///< Layers with other learning rates.
  /// Rows of the job's second set in every step, or all of them if there are fewer; 0: none. They are drawn from
  /// consecutive shuffles of the set; with in_order, from the unshuffled set, repeatedly.
  std::int64_t replay_rows = 0;
  double replay_weight = 1.0; ///< Step loss = mean over own rows + replay_weight * mean over replayed rows.
  replay_pass replay_by = replay_pass::joint;
  std::optional<augmentation_kind> replay_augment{}; ///< Augmentation of replayed rows; nullopt: `augment`.
  /// True: the last step of each shuffle of the second set has only the remaining rows. False: rows of the next shuffle
  /// fill that step up to replay_rows.
  bool replay_short_last = false;
  std::vector<teacher_view> teachers{}; ///< One per entry of train_job::teachers.
  std::vector<std::string> maps{};      ///< Entries of model::maps() that the loss reads.
  training_result result = training_result::weights;
  bool evaluation = false; ///< The whole net is in evaluation mode: no dropout, constant running statistics.
  /// Layers that are not trained are in training mode, too: they use batch statistics and update running statistics.
  bool update_running_stats = false;
  /// Number of updates of running statistics per step, all with the same batch statistics. Values above 1 reproduce
  /// programs that pass the rows of a step through the unchanged net several times.
  std::int64_t running_stats_updates = 1;
  bool operator==(const training_options&) const = default;
};

/// True if an epoch's last step is skipped when it has fewer than batch_rows rows.
[[nodiscard]] constexpr bool drops_short_step(const training_options& options) noexcept {
  return options.drop_last && options.batch_rows > 0 && options.result == training_result::weights;
}

/// Options for round `round_of_task` (from 0) of `rounds_of_task`, with the learning rate schedule applied.
[[nodiscard]] training_options options_for_round(const training_section& from, trainable_part part, class_range classes,
                                                 std::int64_t round_of_task, std::int64_t rounds_of_task);

/// Parameters of the net that a training of `part` changes. Throws std::invalid_argument if a name is not a layer, or
/// if nothing remains to be trained. @param layers names for trainable_part::layers; otherwise unused
/// @param update_running_stats true: the running statistics of all layers change, too
[[nodiscard]] parameter_choice trained_parameters(const model& net, trainable_part part,
                                                  const std::vector<std::string>& layers = {},
                                                  bool update_running_stats = false);

/// One step of a fused group, as the loss receives it. Padded rows have row_weight 0.
struct loss_input {
  const at::Tensor& logits;     ///< [K, B, classes]; undefined if the loss covers no class
  const at::Tensor& features;   ///< [K, B, D]
  const at::Tensor& labels;     ///< [K, B] int64, relative to the first class of the loss; -1 for padding
  const at::Tensor& row_weight; ///< [K, B] float32: the row's weight / rows of the step; 0 for padding
  std::span<const std::shared_ptr<const tensor_map>> auxiliaries; ///< [K] extra inputs of each client; may be null
  /// Teacher outputs for the same rows: logits [K, B, teacher_view::classes], features [K, B, D], maps.
  std::vector<activations> teachers{};
  std::span<const at::Tensor> maps{}; ///< [K, B, C, height, width] each, in the order of training_options::maps.
  std::int64_t replayed = 0;          ///< The last `replayed` of the B rows, including padding, are replayed rows.
  at::Tensor targets{};               ///< [K, B, classes] target distributions; undefined: use labels
  /// s in [0, 1]: cross-entropy uses the target (1 - s) * target + s / classes.
  double label_smoothing = 0.0;
  bool is_padded = true; ///< False: no row is padding, so labels are not searched for -1.
};
/// One term of a loss, including its factor. Used for records only; it does not affect training.
struct loss_term {
  const char* name = ""; ///< One word, such as "distillation"; key in metrics.jsonl.
  at::Tensor value{};    ///< float64: [K] in loss_output, [] for a penalty
};
struct loss_output {
  at::Tensor values{};              ///< [K] float64: sum over rows of row_weight * loss
  at::Tensor d_logits{};            ///< [K, B, classes], or undefined
  at::Tensor d_features{};          ///< [K, B, D], or undefined
  std::vector<at::Tensor> d_maps{}; ///< One per entry of training_options::maps; each may be undefined.
  /// [K, B, classes] or undefined: an additional gradient of the logits that changes the head only, because it stops at
  /// the features. Requires a net of type `network`.
  at::Tensor d_head_logits{};
  std::vector<loss_term> terms{}; ///< Terms with the sum `values`; empty: one term, main_term().
};

/// A training objective. Const and shared by threads; a model's results never depend on the other models.
class loss {
public:
  virtual ~loss() = default;
  /// Text that is equal only for losses with the same formula and constants.
  [[nodiscard]] virtual std::string identity() const = 0;
  /// Computes the loss and its gradients for one step of all models.
  [[nodiscard]] virtual loss_output operator()(const loss_input& in) const = 0;
  /// False if the loss uses features and maps only. It can then train nets without a head, or with empty `classes`:
  /// logits are undefined, d_logits is ignored, and labels are those of the data set.
  [[nodiscard]] virtual bool reads_logits() const { return true; }
  /// True if `targets` replace the labels when given. Jobs with other objectives must not have targets.
  [[nodiscard]] virtual bool reads_targets() const { return false; }
  /// True if the loss uses `label_smoothing`. Jobs with other objectives must not set it.
  [[nodiscard]] virtual bool reads_label_smoothing() const { return false; }
  /// Name of `values` in metrics.jsonl if loss_output::terms is empty.
  [[nodiscard]] virtual const char* main_term() const { return "loss"; }
  /// True if regularize() has an effect.
  [[nodiscard]] virtual bool regularizes() const { return false; }
  /// Adds the gradient of a penalty on weights. Called before gradient clipping and weight decay. Weights, start and
  /// gradients are [n]: one trained segment of one model, which begins at `offset` in its weights.
  virtual void regularize(const at::Tensor& /*weights*/, const at::Tensor& /*start*/, std::int64_t /*offset*/,
                          const tensor_map* /*side*/, at::Tensor& /*gradients*/) const {}
  /// Values of the penalty of regularize(), on the device of the weights. For records; called in the last epoch only.
  [[nodiscard]] virtual std::vector<loss_term> penalties(const at::Tensor& /*weights*/, const at::Tensor& /*start*/,
                                                         std::int64_t /*offset*/, const tensor_map* /*side*/) const {
    return {};
  }
};
using loss_ref = std::shared_ptr<const loss>;

/// Softmax cross-entropy over the classes of the loss: -sum_c t_c log p_c, averaged over rows that are not padding,
/// with targets t and probabilities p. Base class of objectives that add a penalty on weights.
class cross_entropy_loss : public loss {
public:
  [[nodiscard]] std::string identity() const override { return "cross-entropy"; }
  [[nodiscard]] bool reads_targets() const override { return true; }
  [[nodiscard]] bool reads_label_smoothing() const override { return true; }
  [[nodiscard]] const char* main_term() const override { return "cross_entropy"; }
  [[nodiscard]] loss_output operator()(const loss_input& in) const override;
};
/// The shared cross_entropy_loss.
[[nodiscard]] loss_ref cross_entropy_objective();
/// Cross-entropy plus mu / 2 |w - w_start|^2 (Li et al. 2020, FedProx, eq. 2).
[[nodiscard]] loss_ref proximal_objective(double mu);
/// The penalty factor / 2 |a - b|^2, [] float64. Allocates no memory on a CPU. @param a, b [n] float32
[[nodiscard]] at::Tensor half_square_distance(const at::Tensor& a, const at::Tensor& b, double factor);

} // namespace mneme
