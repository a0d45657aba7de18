/// frozen_outputs: outputs of frozen nets for a client's rows, computed once for all steps of a training.
#pragma once
#include "runtime/method/jobs.hpp"
#include "runtime/models/row_wise_model.hpp"
#include "runtime/training/image_store.hpp"
namespace mneme {

// Axes: n rows of a client, B rows of a step, D features, T classes of the teacher.

/// A teacher's outputs for a client's rows, in the order of the job. Rows that the loss does not compare are zeros.
struct teacher_rows {
  at::Tensor features{}; ///< [n, D], or undefined: not computed
  at::Tensor logits{};   ///< [n, T], or undefined
  /// Copies the rows at `positions` to features [B, D] and logits [B, T]. A null pointer skips that output. The rows
  /// after them, up to `padded`, become zeros.
  void copy_to(std::span<const std::int64_t> positions, std::int64_t padded, float* features_to,
               float* logits_to) const;
};

/// Computes the outputs of a frozen front or a teacher for one group of trainings, on a CPU. Blocks contain rows of one
/// client only, so a client's bits do not depend on other clients. If a net's bits depend on the number of rows, these
/// outputs equal the outputs of a training step up to rounding.
class frozen_outputs {
public:
  frozen_outputs(const row_wise_model& net, const training_options& options, const parameter_choice& trained)
      : net_(net), options_(options), trained_(trained) {}
  /// True if the job's rows are the same in every epoch, so that outputs can be computed once.
  [[nodiscard]] static bool may_keep(const training_options& options, const train_job& job);

  /// True if all layers up to the features are frozen.
  [[nodiscard]] bool has_frozen_front() const;
  /// Returns the rows' features as a data set, in the order of `samples`. @param weights [P]
  [[nodiscard]] sample_view features_of_frozen(const sample_view& samples, const at::Tensor& weights,
                                               image_store& images);
  /// Computes a teacher's outputs for the rows. @param teacher weights [P]
  [[nodiscard]] teacher_rows find_teacher_rows(const sample_view& samples, const teacher_view& view,
                                               const at::Tensor& teacher, image_store& images);

private:
  void show(const sample_view& samples, std::span<const std::int64_t> positions, const at::Tensor& weights,
            class_range classes, image_store& images, teacher_rows& to);

  const row_wise_model& net_;
  const training_options& options_;
  const parameter_choice& trained_;
  tape kept_{};
  at::Tensor inputs_{};
};

} // namespace mneme
