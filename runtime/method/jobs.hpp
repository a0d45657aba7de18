/// Jobs: the tensor work a client or server may ask for, and what it gets back.
#pragma once
#include "runtime/base/failure_of.hpp"
#include "runtime/base/ids.hpp"
#include "runtime/base/rng.hpp"
#include "runtime/base/tensor_map.hpp"
#include "runtime/data/dataset.hpp"
#include "runtime/method/program.hpp"
#include "runtime/method/training.hpp"
#include "runtime/models/model.hpp"
#include <optional>
#include <stdexcept>
#include <variant>
#include <vector>
namespace mneme {

// Axes: n rows of a job, P weights of a model, D features, C classes of the run, M projected width.

/// Rows of a job, and what a method says of them besides their labels.
struct row_notes {
  std::shared_ptr<const std::vector<float>> weights{}; ///< [n] factor of each row's loss; null: 1
  /// [n, classes of the loss] float32: what the rows should be told to be, in place of their labels; undefined: labels.
  /// The objective must read it (loss::reads_targets()).
  at::Tensor targets{};
};
/// A second set of rows, replayed or generated: `training_options::replay_rows` of them join every step.
struct replayed_rows {
  sample_view samples{}; ///< Their shape is that of the job's own; may be empty.
  row_notes notes{};
};
/// Local training of one client, or of the server on rows it may see.
struct train_job {
  model_ref net{};
  tensors_ref start{}; ///< Holds `flat_weights` [P].
  sample_view samples{};
  row_notes notes{}; ///< What `samples` are told to be.
  replayed_rows replay{};
  loss_ref objective{};  ///< Null: cross_entropy().
  tensors_ref side{};    ///< What the loss reads besides weights and rows, per client; may be null.
  tensors_ref teacher{}; ///< `flat_weights` of a frozen net of the same kind, in evaluation mode; options.taught.
  training_options options{};
  rng_key stream{}; ///< Shuffles and augmentation are keyed below it.
};
struct train_output {
  tensors_ref weights{};           ///< `flat_weights` [P]; null where the job asks for something else
  at::Tensor gradients{};          ///< [P] float32: training_result::gradient, ::squared_gradients
  at::Tensor row_norms{};          ///< [n] float64, in the order of `samples`: training_result::row_norms
  double loss_mean = 0.0;          ///< Penalties included, over the steps of the last epoch; 0 if nothing was trained.
  double first_loss = 0.0;         ///< The sum of its steps' losses in the first epoch, without penalties; if wanted.
  /// Sums by class of the loss over the features of all steps' rows, as the net computed them in training, and how many
  /// rows there were, [classes, D] and [classes] float64; if wanted, and undefined if nothing was trained.
  at::Tensor feature_sums{}, feature_rows{};
  const char* loss_name = nullptr; ///< loss::main_term(); null if nothing was trained.
  /// What the loss is the sum of, by name, where it has several terms; else null.
  std::shared_ptr<const std::map<std::string, double>> several_terms{};
  std::int64_t rows_seen = 0; ///< Rows of the job, whatever the epochs: the upload's weight.

  /// What the loss is the sum of, by name; empty if nothing was trained.
  [[nodiscard]] std::map<std::string, double> loss_terms() const;
};

/// One pass over all rows under fixed weights, in order.
struct extract_job {
  model_ref net{};
  tensors_ref weights{};
  sample_view samples{};
  bool logits = true;                                  ///< The logits are wanted, too.
  bool frozen = false;                                 ///< The weights change no more: features may be remembered.
  augmentation_kind augment = augmentation_kind::none; ///< How each row is shown; keyed below `stream`. Not if frozen.
  rng_key stream{};
};
struct extract_output {
  at::Tensor features{}; ///< [n, D] float32
  at::Tensor logits{};   ///< [n, C] float32; undefined where the net has no head, or they are not wanted
  at::Tensor labels{};   ///< [n] int64
};

/// Sums over features H (n x M), in float64: H = X, or ReLU(X W) if there is a projection W.
struct statistics_job {
  model_ref net{};
  tensors_ref weights{};
  sample_view samples{};
  at::Tensor projection{}; ///< [D, M] float64, or undefined
  bool gram = true;        ///< H^T H is wanted.
  class_range classes{};   ///< The C classes whose sums are wanted; every row's label is one of them.
  /// [n] the part of each row, 0 .. parts - 1: sums and counts are made part by part. Null: one part.
  std::shared_ptr<const std::vector<std::int32_t>> part_of{};
  std::int64_t parts = 1;
  bool frozen = false; ///< As in extract_job.
};
struct statistics_output {
  at::Tensor gram{};   ///< The triangle (triangle.hpp) of H^T H, float64, or undefined
  at::Tensor sums{};   ///< [parts, C, M] float64: sum of H over the rows of each class
  at::Tensor counts{}; ///< [parts, C] float64
};

/// A pure function of tensors, on the worker's device: solves, estimates, whatever a method computes in one go.
struct compute_job {
  const char* name = "compute"; ///< In errors.
  tensor_map (*run)(const tensor_map& in) = nullptr;
  tensors_ref in{};
  std::int64_t rows = 0; ///< Rows of the client's that it stands for: its virtual duration.
};
struct compute_output {
  tensors_ref out{};
};

/// How features become scores.
enum class readout_kind : std::uint8_t {
  head,   ///< By the net's own last layer.
  linear, ///< W_c . phi
  cosine, ///< cos(W_c, phi)
};
/// Samples of normal features, means and log deviations side by side, drawn row by row.
struct sampled_features {
  rng_key stream{};             ///< A row of the data set has the index of its own below it.
  double low = 0.0, high = 0.0; ///< Bounds of log deviations.
};
/// What a net does behind its features, where it is frozen up to them.
struct classifier_stage {
  model_ref net{};        ///< Its weights are the last of the whole net's.
  model_ref front_net{};  ///< What computes the features: the whole net, or its part that is frozen.
  tensors_ref front{};    ///< The weights of front_net, which are the whole net's up to the features and never change.
  std::int64_t reads = 0; ///< The first so many features of a row: all, or the means of normals.
  std::optional<sampled_features> sampled{}; ///< It reads samples of the normals instead of their means.
};
/// What is evaluated and saved: the method's answer to "what have we learnt".
struct predictor {
  model_ref net{};
  tensors_ref weights{};
  readout_kind kind = readout_kind::head;
  at::Tensor projection{};                      ///< [D, M] float64: phi = ReLU(x projection); undefined: phi = x
  at::Tensor readout{};                         ///< [C, M] float32, unless by the head
  bool frozen = false;                          ///< The net changes no more: its features may be remembered.
  std::optional<classifier_stage> classifier{}; ///< By the head, in two parts; none: the net is run as a whole.
};
/// Accuracy and loss on test rows: argmax (the first of equals) and cross-entropy over the classes of
/// `mask`. A row of another class is a wrong answer and adds nothing to the loss.
struct evaluate_job {
  predictor learnt{};
  sample_view samples{};
  class_range mask{};
  bool lists_answers = false; ///< The class that each row is taken for is wanted, too.
};
struct evaluate_output {
  std::int64_t rows = 0, correct = 0;
  double loss_sum = 0.0;               ///< Summed in row order.
  std::vector<std::int32_t> answers{}; ///< [rows] classes of the mask, if wanted.
};

using work = std::variant<train_job, extract_job, statistics_job, evaluate_job, compute_job, program_job>;
using work_output =
    std::variant<train_output, extract_output, statistics_output, evaluate_output, compute_output, program_output>;

/// Jobs with equal keys and the same shard may share a batch. `options` holds everything that
/// changes control flow or arithmetic; clients' rows do not enter it.
struct fuse_key {
  std::uint8_t kind = 0; ///< Index of the alternative in `work`.
  std::uint64_t options = 0;
  auto operator<=>(const fuse_key&) const = default;
};
[[nodiscard]] fuse_key key_of(const work& request);
/// False for jobs that look at rows once, under fixed weights: their device passes rows forward only.
[[nodiscard]] constexpr bool trains(const fuse_key& key) noexcept {
  static_assert(std::is_same_v<std::variant_alternative_t<1, work>, extract_job> &&
                std::is_same_v<std::variant_alternative_t<2, work>, statistics_job> &&
                std::is_same_v<std::variant_alternative_t<3, work>, evaluate_job>);
  return key.kind < 1 || key.kind > 3;
}

/// Rows a job will process, epochs included (at least one); its virtual duration follows from it.
[[nodiscard]] std::int64_t rows_of(const work& request);
/// Bytes its outcome will hold.
[[nodiscard]] std::int64_t outcome_bytes(const work& request);
/// "train", "extract", "statistics", "evaluate", "compute", "program".
[[nodiscard]] const char* work_name(const work& request);

struct job {
  job_id id{};
  work request{};
};

/// Why a job has no output. Thrown by `co_await` inside the round that asked for it.
struct job_error : std::runtime_error {
  job_id job;
  job_error(job_id failed, const std::string& text) : std::runtime_error(text), job(failed) {}
};

/// What a method's step has thrown, and the job that it did not handle.
struct step_failure {
  std::string text{};
  std::optional<job_id> job{};
};
/// Runs code of a method's; null: it throws nothing.
template <class Act>
[[nodiscard]] std::optional<step_failure> step_failure_of(Act&& act) {
  std::optional<job_id> job;
  auto text = failure_of([&] {
    try {
      act();
    } catch (const job_error& error) {
      job = error.job;
      throw;
    }
  });
  return text.empty() ? std::nullopt : std::optional(step_failure{.text = std::move(text), .job = job});
}

/// An output, or the reason why there is none (out of memory, NaN), in words.
using job_outcome = std::variant<work_output, std::string>;
/// Outcomes of all jobs of one stage, in its order.
using outcomes = std::vector<job_outcome>;

/// The reason of a program that ended between two slices because its run was interrupted. Whoever asked for it is not
/// told: the run ends, and a resumed one goes on from there.
inline constexpr const char* interrupted_text = "interrupted between two slices of a program";
[[nodiscard]] bool is_interrupted(const outcomes& results);

} // namespace mneme
