/// Training options and losses: what a training job does besides its rows.
#pragma once
#include "runtime/base/class_range.hpp"
#include "runtime/models/model.hpp"
#include "runtime/settings/scenario.hpp"
#include <ATen/core/Tensor.h>
#include <optional>
#include <span>
namespace mneme {

class tensor_map;

/// What a training job is asked for. All but weights are taken at the start, which stays as it is, in one pass over the
/// rows; the objective's penalty on weights is no part of them, and zeros stand where nothing is trained.
enum class training_result : std::uint8_t {
  weights,           ///< What the training makes of the start.
  gradient,          ///< The gradient of the mean loss over all rows.
  squared_gradients, ///< The mean over the pass's steps of the squared gradient of a step's loss: Fisher information of
                     ///< batches (Fed-EWC) or, with batch_rows = 1, of rows (Kirkpatrick et al. 2017).
  row_norms,         ///< Each row's own |gradient|, over all that is trained: steps of one row, in evaluation mode.
};

/// How the rows of a job's second set pass through the net beside its own.
enum class replay_pass : std::uint8_t {
  joint,    ///< As one batch: a net that mixes rows normalises both sets by the statistics of both.
  separate, ///< Own rows first, then replayed ones, in two passes of one step: each set has statistics of its own, and
            ///< running statistics move twice.
};

/// What a loss reads of a teacher: a frozen net of the same kind, in evaluation mode.
struct teacher_view {
  class_range classes{};     ///< Logits of these; empty: none.
  bool features = false;     ///< Features, and the maps that training_options::maps lists.
  class_range only_labels{}; ///< Outputs are read for rows of these labels only, from 0 in the loss; empty: all rows.
  bool operator==(const teacher_view&) const = default;
};

/// Options of a training. All of them are part of the fuse key.
struct training_options {
  optimizer_kind optimizer = optimizer_kind::sgd;
  std::int64_t epochs = 1;      ///< 0: takes the time of one epoch and changes nothing.
  std::int64_t batch_rows = 64; ///< 0: full batch.
  double learning_rate = 0.05;  ///< Rate of this round: the schedule is applied already.
  double momentum = 0.0, weight_decay = 0.0, clip_norm = 0.0;
  augmentation_kind augment = augmentation_kind::none;
  double label_smoothing = 0.0; ///< loss_input::label_smoothing
  /// The last step of an epoch is left out where it would have fewer than batch_rows rows: a job with fewer rows than
  /// that takes no step. Read where the result is weights.
  bool drop_last = false;
  trainable_part trained = trainable_part::all; ///< The rest keeps its bits, in evaluation mode (parameter_choice).
  std::vector<std::string> layers{};            ///< Names of what is trained: `trained` is layers.
  bool in_order = false;                        ///< Rows are taken as the job lists them, in every epoch: no shuffle.
  /// The loss covers these; other rows of the head stay untouched. None: the loss is one of features and maps.
  class_range classes{};
  /// Rows of the head of the first so many classes keep their bits, while the others and the rest of the net learn.
  std::int64_t held_classes = 0;
  /// Rows of the head of these classes alone learn, though the loss covers others; none: those of `classes`.
  class_range learnt{};
  std::vector<layer_rate> rates{}; ///< Layers that learn at other rates.
  /// Rows of the job's second set that join every step, or all where there are fewer; 0: it is not read. They are taken
  /// from one shuffle of it after the other (in_order: from the set as it is, again and again).
  std::int64_t replay_rows = 0;
  double replay_weight = 1.0; ///< A step's loss: the mean over its own rows + replay_weight * that over replayed ones.
  replay_pass replay_by = replay_pass::joint;
  std::optional<augmentation_kind> replay_augment{}; ///< How replayed rows are shown; none: as own ones.
  /// Every shuffle of the second set ends with the rows that are left, fewer than replay_rows; false: the next shuffle
  /// fills them up.
  bool replay_short_last = false;
  std::vector<teacher_view> teachers{}; ///< One per entry of train_job::teachers.
  std::vector<std::string> maps{};      ///< Those of model::maps() that the net shows the loss.
  training_result result = training_result::weights;
  bool evaluation = false; ///< All of the net is in evaluation mode: nothing is dropped, running statistics stay.
  /// What is not trained is in training mode, too: it normalises by the step's rows, and its running statistics move.
  bool statistics_move = false;
  /// How often running statistics move in a step, by the same statistics each time: as often as a method's own program
  /// passes the step's rows through a net that has not changed.
  std::int64_t statistics_moves = 1;
  bool operator==(const training_options&) const = default;
};

/// True if an epoch's last step is left out where it is short.
[[nodiscard]] constexpr bool drops_short_step(const training_options& options) noexcept {
  return options.drop_last && options.batch_rows > 0 && options.result == training_result::weights;
}

/// The options of `from` for round `round_of_task` (from 0) of `rounds_of_task`, schedule applied.
[[nodiscard]] training_options options_for_round(const training_section& from, trainable_part part, class_range classes,
                                                 std::int64_t round_of_task, std::int64_t rounds_of_task);

/// Which parameters of the net a training of `part` changes; `layers` are read by trainable_part::layers only. Throws
/// std::invalid_argument for a name that is no layer's, or where nothing is left.
/// @param statistics_move the running statistics of all layers change with them
[[nodiscard]] parameter_choice trained_parameters(const model& net, trainable_part part,
                                                  const std::vector<std::string>& layers = {},
                                                  bool statistics_move = false);

/// One step of a fused group as a loss reads it. Padded rows have row_weight 0.
struct loss_input {
  const at::Tensor& logits;     ///< [K, B, classes]; undefined where the loss covers no class
  const at::Tensor& features;   ///< [K, B, D]
  const at::Tensor& labels;     ///< [K, B] int64, from 0 within the classes of the loss; -1 where padded
  const at::Tensor& row_weight; ///< [K, B] float32: 1 / rows of the step * the row's weight, 0 where padded
  std::span<const std::shared_ptr<const tensor_map>> sides; ///< [K] what each client's loss reads besides; may be null
  /// Outputs of the job's teachers for the same rows: logits [K, B, teacher_view::classes], features [K, B, D], maps.
  std::vector<activations> teachers{};
  std::span<const at::Tensor> maps{}; ///< By training_options::maps: [K, B, C, height, width] each.
  std::int64_t replayed = 0;          ///< The last so many of B, padding included, are of the second set.
  at::Tensor targets{};               ///< [K, B, classes]: target distributions, or undefined: labels say it
  /// The cross-entropy with labels (or targets) reads (1 - s) * target + s / classes in place of the target.
  double label_smoothing = 0.0;
  bool is_padded = true; ///< False: no row is padding, so labels need not be searched for it.
};
/// A part of a loss, with its factor: for records, it changes no training.
struct loss_term {
  const char* name = ""; ///< A word, as "distillation"; the key in metrics.jsonl.
  at::Tensor value{};    ///< float64: [K] of a loss_output, [] of a penalty
};
struct loss_output {
  at::Tensor values{};              ///< [K] float64: sum over rows of row_weight * loss
  at::Tensor d_logits{};            ///< [K, B, classes], or undefined
  at::Tensor d_features{};          ///< [K, B, D], or undefined
  std::vector<at::Tensor> d_maps{}; ///< By training_options::maps, each undefined or of its map's shape; or empty
  /// [K, B, classes], or undefined: a further gradient by logits, which changes the head only and ends at the features.
  /// Requires a net that is a `network`.
  at::Tensor d_head_logits{};
  std::vector<loss_term> terms{}; ///< What `values` is the sum of; empty: it is one term, main_term().
};

/// A training objective. Const, shared by threads; model k's results never depend on the others.
class loss {
public:
  virtual ~loss() = default;
  /// Equal for losses that compute the same thing with the same constants.
  [[nodiscard]] virtual std::string identity() const = 0;
  [[nodiscard]] virtual loss_output operator()(const loss_input& in) const = 0;
  /// False if it is one of features and maps alone. Such an objective trains nets without a head, and with one over no
  /// classes: `logits` are undefined then, its d_logits are not read, and labels are those of the data set.
  [[nodiscard]] virtual bool reads_logits() const { return true; }
  /// True if `targets`, where there are some, take the place of labels. Jobs of other objectives may have none.
  [[nodiscard]] virtual bool reads_targets() const { return false; }
  /// True if it reads `label_smoothing`. Jobs of other objectives may not ask for it.
  [[nodiscard]] virtual bool reads_label_smoothing() const { return false; }
  /// What `values` is called in metrics.jsonl where loss_output::terms does not say.
  [[nodiscard]] virtual const char* main_term() const { return "loss"; }
  /// True if regularise() does anything.
  [[nodiscard]] virtual bool regularises() const { return false; }
  /// Adds the gradient of a penalty on weights: `weights`, `start` and `gradients` are [n] of one
  /// model, one trained segment beginning at `offset`. Called before clipping and decay.
  virtual void regularise(const at::Tensor& /*weights*/, const at::Tensor& /*start*/, std::int64_t /*offset*/,
                          const tensor_map* /*side*/, at::Tensor& /*gradients*/) const {}
  /// The values of that penalty, on the device of the weights: for records, asked for in the last epoch only.
  [[nodiscard]] virtual std::vector<loss_term> penalties(const at::Tensor& /*weights*/, const at::Tensor& /*start*/,
                                                         std::int64_t /*offset*/, const tensor_map* /*side*/) const {
    return {};
  }
};
using loss_ref = std::shared_ptr<const loss>;

/// Softmax cross-entropy over the classes of the loss, mean over real rows; of targets t and probabilities p,
/// -sum_c t_c log p_c. A base of objectives that add a penalty on weights.
class cross_entropy_loss : public loss {
public:
  [[nodiscard]] std::string identity() const override { return "cross-entropy"; }
  [[nodiscard]] bool reads_targets() const override { return true; }
  [[nodiscard]] bool reads_label_smoothing() const override { return true; }
  [[nodiscard]] const char* main_term() const override { return "cross_entropy"; }
  [[nodiscard]] loss_output operator()(const loss_input& in) const override;
};
[[nodiscard]] loss_ref cross_entropy_objective();
/// Cross-entropy plus mu / 2 |w - w_start|^2 (Li et al. 2020, FedProx, eq. 2).
[[nodiscard]] loss_ref proximal_objective(double mu);
/// factor / 2 |a - b|^2, the value of a penalty: [] float64. On a CPU it takes no memory. @param a, b [n] float32
[[nodiscard]] at::Tensor half_square_distance(const at::Tensor& a, const at::Tensor& b, double factor);

} // namespace mneme
