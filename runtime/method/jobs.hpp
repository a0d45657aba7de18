/// jobs: tensor computations that a client or the server may request, and their results.
#pragma once
#include "runtime/base/exception_message.hpp"
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

/// Annotations of a job's rows in addition to labels.
struct row_annotations {
  std::shared_ptr<const std::vector<float>> weights{}; ///< [n] factor of each row's loss; null: all 1
  /// [n, classes of the loss] float32: target distributions that replace the labels; undefined: use labels. Requires
  /// loss::reads_targets().
  at::Tensor targets{};
};
/// A second set of rows (replayed or generated). Each step adds `training_options::replay_rows` of them.
struct replayed_rows {
  sample_view samples{}; ///< Rows with the shape of the job's own rows; may be empty.
  row_annotations annotations{};
};
/// Local training on a client, or on the server with rows that it may read.
struct train_job {
  model_ref net{};
  tensors_ref start{}; ///< Contains `flat_weights` [P].
  sample_view samples{};
  row_annotations annotations{}; ///< Annotations of `samples`.
  replayed_rows replay{};
  loss_ref objective{};    ///< Null: cross_entropy_objective().
  tensors_ref auxiliary{}; ///< Additional inputs of the client's loss; may be null.
  training_options options{};
  /// `flat_weights` of frozen teacher nets of the same kind; training_options::teachers selects their outputs.
  std::vector<tensors_ref> teachers{};
  observation_ref observation{}; ///< Null: no observer.
  rng_key stream{};              ///< Random key for shuffling and augmentation.

  /// Adds a teacher. @param view the outputs that the loss reads
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
  tensors_ref weights{};           ///< `flat_weights` [P]; null if training_result is not weights
  at::Tensor gradients{};          ///< [P] float32, for training_result::gradient and ::squared_gradients
  at::Tensor row_norms{};          ///< [n] float64 in the order of `samples`, for training_result::row_norms
  double loss_mean = 0.0;          ///< Mean over the steps of the last epoch, with penalties; 0 if nothing was trained.
  tensors_ref observed{};          ///< Records of train_job::observation, on the host; null without an observer.
  const char* loss_name = nullptr; ///< loss::main_term(); null if nothing was trained.
  /// Terms of the loss by name if it has several; otherwise null.
  std::shared_ptr<const std::map<std::string, double>> several_terms{};
  std::int64_t rows_seen = 0; ///< Number of the job's rows, counted once for all epochs. It is the weight of the upload
                              ///< in averages.

  /// Mean value of each loss term by name; empty if nothing was trained.
  [[nodiscard]] std::map<std::string, double> loss_terms() const;
};

/// One forward pass over all rows in order, with fixed weights.
struct extract_job {
  model_ref net{};
  tensors_ref weights{};
  sample_view samples{};
  bool logits = true;  ///< True: also return logits.
  bool frozen = false; ///< True: the weights never change again, so features may be cached.
  augmentation_kind augment =
      augmentation_kind::none; ///< Augmentation of each row, keyed by `stream`; requires frozen = false.
  rng_key stream{};
};
struct extract_output {
  at::Tensor features{}; ///< [n, D] float32
  at::Tensor logits{};   ///< [n, C] float32; undefined if the net has no head or `logits` is false
  at::Tensor labels{};   ///< [n] int64
};

/// Computes sums over features H [n, M] in float64: H = X, or H = ReLU(X W) if there is a projection W.
struct statistics_job {
  model_ref net{};
  tensors_ref weights{};
  sample_view samples{};
  at::Tensor projection{}; ///< W [D, M] float64; undefined: no projection
  bool gram = true;        ///< True: also return H^T H.
  class_range classes{};   ///< The C classes to sum over; must contain all labels of the rows.
  /// [n] part of each row, from 0 to parts - 1; sums and counts are returned for each part. Null: one part.
  std::shared_ptr<const std::vector<std::int32_t>> part_of{};
  std::int64_t parts = 1;
  bool frozen = false; ///< See extract_job.
};
struct statistics_output {
  at::Tensor gram{};   ///< Triangle (triangle.hpp) of H^T H, float64; undefined if `gram` is false
  at::Tensor sums{};   ///< [parts, C, M] float64: sum of H over the rows of each class
  at::Tensor counts{}; ///< [parts, C] float64: number of rows of each class
};

/// A pure function of tensors on the worker's device, such as a linear solve.
struct compute_job {
  const char* name = "compute"; ///< Name for errors.
  tensor_map (*run)(const tensor_map& in) = nullptr;
  tensors_ref in{};
  std::int64_t rows = 0; ///< Number of client rows that determine its virtual duration.
};
struct compute_output {
  tensors_ref out{};
};

/// Computation of class scores from features phi.
enum class readout_kind : std::uint8_t {
  head,   ///< The net's own head.
  linear, ///< The score of class c is W_c . phi.
  cosine, ///< The score of class c is cos(W_c, phi).
};
/// Features that are sampled from normal distributions. A feature vector contains the means, followed by the log
/// standard deviations.
struct sampled_features {
  rng_key stream{};             ///< Random key; each row of the data set uses its own index.
  double low = 0.0, high = 0.0; ///< Bounds for log standard deviations.
};
/// The part of a net after its features. The part up to the features is frozen.
struct classifier_stage {
  model_ref net{};        ///< The classifier; its weights are the last ones of the whole net.
  model_ref front_net{};  ///< Net that computes the features: the whole net, or its frozen part.
  tensors_ref front{};    ///< Weights of front_net; constant.
  std::int64_t reads = 0; ///< Number of leading features that the classifier reads: all, or only the means.
  std::optional<sampled_features> sampled{}; ///< If set, the classifier reads samples instead of the means.
};
/// The model to evaluate and save.
struct predictor {
  model_ref net{};
  tensors_ref weights{};
  readout_kind kind = readout_kind::head;
  at::Tensor projection{}; ///< [D, M] float64: phi = ReLU(x projection); undefined: phi = x
  at::Tensor readout{};    ///< W [C, M] float32; unused for readout_kind::head
  bool frozen = false;     ///< True: the net never changes again, so its features may be cached.
  std::optional<classifier_stage>
      classifier{}; ///< Evaluates a frozen front and the classifier separately; nullopt: runs the net as a whole.
};
/// Accuracy and loss on test rows over the classes of `mask`. The prediction is the class with the highest score; among
/// equal scores, the class with the lowest index. The loss is cross-entropy. A row of a class outside the mask counts
/// as wrong, with loss 0.
struct evaluate_job {
  predictor learned{};
  sample_view samples{};
  class_range mask{};
  bool lists_answers = false; ///< True: also return the predicted class of each row.
};
struct evaluate_output {
  std::int64_t rows = 0, correct = 0;
  double loss_sum = 0.0;               ///< Sum over the rows, in row order.
  std::vector<std::int32_t> answers{}; ///< [rows] predicted classes, relative to the mask; empty unless requested.
};

using work = std::variant<train_job, extract_job, statistics_job, evaluate_job, compute_job, program_job>;
using work_output =
    std::variant<train_output, extract_output, statistics_output, evaluate_output, compute_output, program_output>;

/// Jobs of one shard with equal keys may share a batch. `options` is a hash of everything that changes control flow or
/// arithmetic. The clients' rows are not part of the key.
struct fuse_key {
  std::uint8_t kind = 0; ///< Index of the alternative in `work`.
  std::uint64_t options = 0;
  auto operator<=>(const fuse_key&) const = default;
};
/// The key of a job, from its kind, net and options.
[[nodiscard]] fuse_key key_of(const work& request);
/// False for jobs that make one forward pass with fixed weights.
[[nodiscard]] constexpr bool trains(const fuse_key& key) noexcept {
  static_assert(std::is_same_v<std::variant_alternative_t<1, work>, extract_job> &&
                std::is_same_v<std::variant_alternative_t<2, work>, statistics_job> &&
                std::is_same_v<std::variant_alternative_t<3, work>, evaluate_job>);
  return key.kind < 1 || key.kind > 3;
}

/// Number of rows that a job processes, summed over its epochs (at least one); determines its virtual duration.
[[nodiscard]] std::int64_t rows_of(const work& request);
/// Size of the job's result in bytes.
[[nodiscard]] std::int64_t outcome_bytes(const work& request);
/// Name of the job's kind: "train", "extract", "statistics", "evaluate", "compute" or "program".
[[nodiscard]] const char* work_name(const work& request);

struct job {
  job_id id{};
  work request{};
};

/// Error of a job, thrown by `co_await` in the round that requested it.
struct job_error : std::runtime_error {
  job_id job;
  job_error(job_id failed, const std::string& text) : std::runtime_error(text), job(failed) {}
};

/// An exception of a method's step, and the failed job that caused it, if any.
struct step_failure {
  std::string text{};
  std::optional<job_id> job{};
};
/// Runs code of a method. Returns nullopt if it does not throw.
template <class Act>
[[nodiscard]] std::optional<step_failure> catch_step_failure(Act&& act) {
  std::optional<job_id> job;
  auto text = exception_message_of([&] {
    try {
      act();
    } catch (const job_error& error) {
      job = error.job;
      throw;
    }
  });
  return text.empty() ? std::nullopt : std::optional(step_failure{.text = std::move(text), .job = job});
}

/// The result of a job, or its error message (such as out of memory or NaN).
using job_outcome = std::variant<work_output, std::string>;
/// Results of all jobs of one stage, in the order of its jobs.
using outcomes = std::vector<job_outcome>;

/// Error of a program that was stopped between two slices because its run was interrupted. The method does not receive
/// this error: the run ends, and a resumed run continues with the next slice.
inline constexpr const char* interrupted_text = "interrupted between two slices of a program";
/// True if a job of the stage was interrupted.
[[nodiscard]] bool is_interrupted(const outcomes& results);

} // namespace mneme
