#include "runtime/training/job_validation.hpp"
#include "runtime/models/row_wise_model.hpp"
#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
namespace mneme {
namespace {

/// Checks the weights and targets that a method gives for rows. @param rows name of these rows in errors. Returns an
/// error text; empty if they are valid.
std::string validate_annotations(const row_annotations& annotations, const sample_view& samples, const char* rows,
                                 const train_job& job) {
  const auto n = samples.size(), classes = job.options.classes.size();
  if (annotations.weights && std::ssize(*annotations.weights) != n)
    return fmt::format("there are {} weights of {} {}; expected one of each", annotations.weights->size(), n, rows);
  if (!annotations.targets.defined())
    return {};
  const auto& targets = annotations.targets;
  if (targets.scalar_type() != at::kFloat || targets.dim() != 2 || targets.size(0) != n || targets.size(1) != classes ||
      !targets.is_contiguous() || !targets.is_cpu())
    return fmt::format("targets of {} are {}{}; expected contiguous float32 [{}, {}] of the host, a row of each and a "
                       "column per class of the loss",
                       rows, c10::toString(targets.scalar_type()), targets.sizes().vec(), n, classes);
  if (job.objective && !job.objective->reads_targets())
    return fmt::format("{} have targets, but the objective '{}' reads labels only", rows, job.objective->identity());
  return {};
}

std::string validate_replay(const train_job& job) {
  const auto& replay = job.replay;
  if (replay.samples.size() == 0)
    return {};
  if (job.options.replay_rows <= 0)
    return fmt::format("{} rows are given for replay, but replay_rows = {} of them join a step; expected 1 or more",
                       replay.samples.size(), job.options.replay_rows);
  if (job.samples.size() > 0 && replay.samples.source->shape() != job.samples.source->shape())
    return fmt::format("rows to replay have the shape {}; expected that of the job's own, {}",
                       replay.samples.source->shape(), job.samples.source->shape());
  return validate_annotations(replay.annotations, replay.samples, "rows to replay", job);
}

std::string validate_result(const train_job& job) {
  if (job.options.result == training_result::weights)
    return {};
  if (job.options.epochs > 1)
    return fmt::format("gradients are taken in one pass over the rows; expected epochs = 1, not {}",
                       job.options.epochs);
  if (job.replay.samples.size() > 0)
    return "gradients are computed from one set of rows, but rows to replay are given; expected none";
  return {};
}

/// Returns an error if the net predicts tokens and the job has data per row or per class.
std::string token_error(const train_job& job) {
  const auto& options = job.options;
  const char* found = !options.teachers.empty()                                                       ? "teachers"
                      : job.annotations.targets.defined() || job.replay.annotations.targets.defined() ? "soft targets"
                      : options.held_classes > 0 || options.trained_classes.size() > 0 ? "parts of the head by class"
                                                                                       : nullptr;
  if (!found || positions_of(*job.net) == 1)
    return {};
  return fmt::format("the net '{}' predicts the next token of each position, and the method trains with {}; expected "
                     "model.causal = false, or a method that averages weights, such as \"fedavg\"",
                     job.net->identity(), found);
}

std::string validate_head(const train_job& job) {
  if (auto error = token_error(job); !error.empty() || (positions_of(*job.net) > 1 && job.options.classes.size() > 0))
    return error;
  const auto known = job.net->classes();
  std::vector<class_range> ranges{job.options.classes};
  for (const auto& teacher : job.options.teachers)
    ranges.push_back(teacher.classes);
  for (const auto& range : ranges)
    if (range.size() > 0 && range.high > known)
      return fmt::format("classes {} to {} are requested, but the head of the net '{}' has {}; expected classes of the "
                         "head, or none for an objective of features",
                         range.low, range.high - 1, job.net->identity(), known);
  if (const auto& options = job.options;
      options.trained_classes.size() > 0 &&
      (options.trained_classes.low < options.classes.low || options.trained_classes.high > options.classes.high))
    return fmt::format("rows of the head for classes {} to {} are to be trained, but the loss covers classes {} to {}; "
                       "expected classes of the loss",
                       options.trained_classes.low, options.trained_classes.high - 1, options.classes.low,
                       options.classes.high - 1);
  if (const auto& options = job.options;
      options.held_classes < 0 || (options.held_classes > 0 && options.held_classes >= options.classes.high))
    return fmt::format("the rows of the head for the first {} classes are to stay unchanged, but the loss covers "
                       "classes {} to {}; expected a class after them",
                       options.held_classes, options.classes.low, options.classes.high - 1);
  const auto objective = job.objective ? job.objective : cross_entropy_objective();
  if (job.options.classes.size() == 0 && job.samples.size() > 0 && objective->reads_logits())
    return fmt::format("the objective '{}' reads logits, but there are none: {}; expected an objective of features and "
                       "maps (loss::reads_logits)",
                       objective->identity(),
                       known == 0 ? fmt::format("the net '{}' has no head", job.net->identity())
                                  : "the loss covers no class");
  return {};
}

std::string smoothing_error(const train_job& job) {
  if (job.options.label_smoothing == 0.0 || !job.objective || job.objective->reads_label_smoothing())
    return {};
  return fmt::format("training.label_smoothing = {}: the objective '{}' does not read it; expected 0.0",
                     job.options.label_smoothing, job.objective->identity());
}

std::string validate_maps(const train_job& job) {
  if (job.options.maps.empty())
    return {};
  const auto known = job.net->maps();
  for (const auto& name : job.options.maps)
    if (std::find(known.begin(), known.end(), name) == known.end())
      return fmt::format("the net '{}' has no map '{}'; expected names of: {}", job.net->identity(), name,
                         known.empty() ? "none, it has no maps" : fmt::format("{}", fmt::join(known, ", ")));
  return {};
}

std::string validate_weights(const tensors_ref& given, const char* whose, const model& net) {
  const auto* const flat = given ? given->find(flat_weights) : nullptr;
  if (!flat)
    return fmt::format("there are no {}; expected the [{}] weights of the net '{}'", whose, net.size(), net.identity());
  if (flat->scalar_type() == at::kFloat && flat->dim() == 1 && flat->numel() == net.size() && flat->is_contiguous())
    return {};
  return fmt::format("{} are {}{}; expected contiguous float32 [{}], those of the net '{}'", whose,
                     c10::toString(flat->scalar_type()), flat->sizes().vec(), net.size(), net.identity());
}

} // namespace

std::string validate_rows(const sample_view& samples) {
  const auto n = samples.size();
  if (n == 0)
    return {};
  if (!samples.source)
    return fmt::format("{} rows belong to no data set", n);
  if (samples.marks && std::ssize(*samples.marks) != n)
    return fmt::format("there are {} marks of {} rows; expected one of each", samples.marks->size(), n);
  const auto [least, most] = std::minmax_element(samples.rows->begin(), samples.rows->end());
  const auto transforms = std::max<std::int64_t>(std::ssize(samples.source->transforms), 1);
  const auto known = samples.source->files_rows() * transforms;
  if (*least >= 0 && *most < known)
    return {};
  return fmt::format("row {} is requested, but the data set has rows 0 to {}", *least < 0 ? *least : *most, known - 1);
}

std::string validate_rows(const work& request) {
  return std::visit(
      [](const auto& job) -> std::string {
        if constexpr (requires { job.replay.samples; }) {
          if (auto reason = validate_rows(job.replay.samples); !reason.empty())
            return reason;
        }
        if constexpr (requires { job.samples; })
          return validate_rows(job.samples);
        else
          return {};
      },
      request);
}

std::string validate_weights(const work& request) {
  if (const auto* const training = std::get_if<train_job>(&request)) {
    auto reason = training->samples.size() > 0 && training->options.epochs > 0
                      ? validate_weights(training->start, "start weights", *training->net)
                      : std::string();
    for (const auto& teacher : training->teachers)
      if (reason.empty())
        reason = validate_weights(teacher, "weights of a teacher", *training->net);
    return reason;
  }
  const auto of_pass = [](const auto& pass) {
    return pass.samples.size() > 0 ? validate_weights(pass.weights, "weights", *pass.net) : std::string();
  };
  if (const auto* const extract = std::get_if<extract_job>(&request))
    return of_pass(*extract);
  if (const auto* const statistics = std::get_if<statistics_job>(&request))
    return of_pass(*statistics);
  return {};
}

std::string validate_training_job(const train_job& job) {
  if (auto reason = validate_head(job); !reason.empty())
    return reason;
  if (job.teachers.size() != job.options.teachers.size())
    return fmt::format(
        "the job has weights of {} teachers, but its options describe {}; expected one description of each",
        job.teachers.size(), job.options.teachers.size());
  if (auto reason = validate_annotations(job.annotations, job.samples, "rows", job); !reason.empty())
    return reason;
  if (auto error = smoothing_error(job); !error.empty())
    return error;
  if (auto reason = validate_maps(job); !reason.empty())
    return reason;
  if (auto reason = validate_result(job); !reason.empty())
    return reason;
  return validate_replay(job);
}

} // namespace mneme
