/// Jobs: tensor work that a client or server may request, and its results.
#pragma once
#include "runtime/base/failure_of.hpp"
#include "runtime/base/ids.hpp"
#include "runtime/base/rng.hpp"
#include "runtime/base/tensor_map.hpp"
#include "runtime/data/dataset.hpp"
#include "runtime/method/program.hpp"
#include "runtime/method/training.hpp"
#include "runtime/method/training_observer.hpp"
#include "runtime/models/model.hpp"
#include <optional>
#include <stdexcept>
#include <variant>
#include <vector>
namespace mneme {

// Axes: n rows of a job, P weights of a model, D features, C classes of the run, M projected width.

/// Annotations of a job's rows, in addition to labels.
struct row_notes {
  std::shared_ptr<const std::vector<float>> weights{}; ///< [n] factor of each row's loss; null: 1
  /// [n, classes of the loss] float32: target distributions that replace labels; undefined: use labels. The objective
  /// must support it (loss::reads_targets()).
  at::Tensor targets{};
};
/// Second set of rows, replayed or generated; `training_options::replay_rows` of them are added to each step.
struct replayed_rows {
  sample_view samples{}; ///< Must have the shape of the job's own rows; may be empty.
  row_notes notes{};
};
/// Local training of a client, or of the server on rows that it may read.
struct train_job {
  model_ref net{};
  tensors_ref start{}; ///< Contains `flat_weights` [P].
  sample_view samples{};
  row_notes notes{}; ///< Annotations of `samples`.
  replayed_rows replay{};
  loss_ref objective{}; ///< Null: cross_entropy().
  tensors_ref side{};   ///< Further inputs of the loss, per client; may be null.
  training_options options{};
  /// `flat_weights` of frozen nets of the same kind; training_options::teachers says what the loss reads of each.
  std::vector<tensors_ref> teachers{};
  observation_ref observation{}; ///< Null: the training is not observed.
  rng_key stream{};              ///< Key for shuffling and augmentation.

  void add_teacher(tensors_ref weights, teacher_view view) {
    teachers.push_back(std::move(weights));
    options.teachers.push_back(view);
  }
  void remove_teachers() {
    teachers.clear();
    options.teachers.clear();
  }
};
struct train_output {
  tensors_ref weights{};           ///< `flat_weights` [P]; null if the job requests another result
  at::Tensor gradients{};          ///< [P] float32: training_result::gradient, ::squared_gradients
  at::Tensor row_norms{};          ///< [n] float64, in the order of `samples`: training_result::row_norms
  double loss_mean = 0.0;          ///< Mean over the steps of the last epoch, with penalties; 0 if nothing was trained.
  tensors_ref observed{};          ///< Records of train_job::observation, on the host; null if nothing was observed.
  const char* loss_name = nullptr; ///< loss::main_term(); null if nothing was trained.
  /// Terms of the loss by name, if it has several; else null.
  std::shared_ptr<const std::map<std::string, double>> several_terms{};
  std::int64_t rows_seen = 0; ///< Rows of the job, regardless of epochs: the weight of the upload.

  /// Terms of the loss by name; empty if nothing was trained.
  [[nodiscard]] std::map<std::string, double> loss_terms() const;
};

/// One forward pass over all rows with fixed weights, in order.
struct extract_job {
  model_ref net{};
  tensors_ref weights{};
  sample_view samples{};
  bool logits = true;  ///< Return logits, too.
  bool frozen = false; ///< The weights never change again, so features may be cached.
  augmentation_kind augment =
      augmentation_kind::none; ///< Augmentation of each row, keyed by `stream`. Not with `frozen`.
  rng_key stream{};
};
struct extract_output {
  at::Tensor features{}; ///< [n, D] float32
  at::Tensor logits{};   ///< [n, C] float32; undefined if the net has no head or they were not requested
  at::Tensor labels{};   ///< [n] int64
};

/// Sums over features H (n x M), in float64: H = X, or ReLU(X W) if there is a projection W.
struct statistics_job {
  model_ref net{};
  tensors_ref weights{};
  sample_view samples{};
  at::Tensor projection{}; ///< [D, M] float64, or undefined
  bool gram = true;        ///< Return H^T H.
  class_range classes{};   ///< C classes to sum over; must contain every row's label.
  /// [n] part of each row, 0 .. parts - 1: sums and counts are returned per part. Null: one part.
  std::shared_ptr<const std::vector<std::int32_t>> part_of{};
  std::int64_t parts = 1;
  bool frozen = false; ///< As in extract_job.
};
struct statistics_output {
  at::Tensor gram{};   ///< The triangle (triangle.hpp) of H^T H, float64, or undefined
  at::Tensor sums{};   ///< [parts, C, M] float64: sum of H over the rows of each class
  at::Tensor counts{}; ///< [parts, C] float64
};

/// A pure function of tensors on the worker's device, for example a solve.
struct compute_job {
  const char* name = "compute"; ///< In errors.
  tensor_map (*run)(const tensor_map& in) = nullptr;
  tensors_ref in{};
  std::int64_t rows = 0; ///< Rows of the client that it accounts for; gives its virtual duration.
};
struct compute_output {
  tensors_ref out{};
};

/// Computation of scores from features.
enum class readout_kind : std::uint8_t {
  head,   ///< The net's own last layer.
  linear, ///< W_c . phi
  cosine, ///< cos(W_c, phi)
};
/// Samples of normal distributions whose means and log deviations are concatenated in the features.
struct sampled_features {
  rng_key stream{};             ///< Key; each row of the data set has its own index below it.
  double low = 0.0, high = 0.0; ///< Bounds of log deviations.
};
/// Part of a net after its features, if the net is frozen up to them.
struct classifier_stage {
  model_ref net{};        ///< Its weights are the last part of the whole net's.
  model_ref front_net{};  ///< Net that computes the features: the whole net, or its frozen part.
  tensors_ref front{};    ///< Weights of front_net: those of the whole net up to the features; constant.
  std::int64_t reads = 0; ///< Number of features that it reads, from the first: all, or the means.
  std::optional<sampled_features> sampled{}; ///< If set, it reads samples instead of the means.
};
/// Model that is evaluated and saved.
struct predictor {
  model_ref net{};
  tensors_ref weights{};
  readout_kind kind = readout_kind::head;
  at::Tensor projection{}; ///< [D, M] float64: phi = ReLU(x projection); undefined: phi = x
  at::Tensor readout{};    ///< [C, M] float32; not for readout_kind::head
  bool frozen = false;     ///< The net never changes again, so its features may be cached.
  std::optional<classifier_stage>
      classifier{}; ///< For readout_kind::head in two parts; nullopt: run the net as a whole.
};
/// Accuracy and loss on test rows: argmax (the first of equal scores) and cross-entropy over the classes of `mask`. A
/// row of a class outside the mask counts as wrong and adds nothing to the loss.
struct evaluate_job {
  predictor learnt{};
  sample_view samples{};
  class_range mask{};
  bool lists_answers = false; ///< Return the predicted class of each row, too.
};
struct evaluate_output {
  std::int64_t rows = 0, correct = 0;
  double loss_sum = 0.0;               ///< Summed in row order.
  std::vector<std::int32_t> answers{}; ///< [rows] predicted classes, from 0 in the mask; if requested.
};

using work = std::variant<train_job, extract_job, statistics_job, evaluate_job, compute_job, program_job>;
using work_output =
    std::variant<train_output, extract_output, statistics_output, evaluate_output, compute_output, program_output>;

/// Jobs with equal keys and the same shard may share a batch. `options` contains everything that changes control flow
/// or arithmetic; the rows of clients are not part of it.
struct fuse_key {
  std::uint8_t kind = 0; ///< Index of the alternative in `work`.
  std::uint64_t options = 0;
  auto operator<=>(const fuse_key&) const = default;
};
[[nodiscard]] fuse_key key_of(const work& request);
/// False for jobs that make one forward pass with fixed weights.
[[nodiscard]] constexpr bool trains(const fuse_key& key) noexcept {
  static_assert(std::is_same_v<std::variant_alternative_t<1, work>, extract_job> &&
                std::is_same_v<std::variant_alternative_t<2, work>, statistics_job> &&
                std::is_same_v<std::variant_alternative_t<3, work>, evaluate_job>);
  return key.kind < 1 || key.kind > 3;
}

/// Number of rows that a job processes, over all epochs (at least one); gives its virtual duration.
[[nodiscard]] std::int64_t rows_of(const work& request);
/// Size of its result in bytes.
[[nodiscard]] std::int64_t outcome_bytes(const work& request);
/// Returns "train", "extract", "statistics", "evaluate", "compute" or "program".
[[nodiscard]] const char* work_name(const work& request);

struct job {
  job_id id{};
  work request{};
};

/// Error of a job. Thrown by `co_await` in the round that requested it.
struct job_error : std::runtime_error {
  job_id job;
  job_error(job_id failed, const std::string& text) : std::runtime_error(text), job(failed) {}
};

/// Exception of a method's step, and the failed job that caused it, if any.
struct step_failure {
  std::string text{};
  std::optional<job_id> job{};
};
/// Runs code of a method. Returns nullopt if it does not throw.
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

/// Result of a job, or the message of its error (out of memory, NaN).
using job_outcome = std::variant<work_output, std::string>;
/// Results of all jobs of one stage, in its order.
using outcomes = std::vector<job_outcome>;

/// Error of a program that stopped between two slices because its run was interrupted. The method does not see it: the
/// run ends, and a resumed run continues there.
inline constexpr const char* interrupted_text = "interrupted between two slices of a program";
[[nodiscard]] bool is_interrupted(const outcomes& results);

} // namespace mneme
