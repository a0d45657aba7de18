/// frozen_views: what nets that stay as they are show of a client's rows, made once for all steps of a training.
#pragma once
#include "runtime/method/jobs.hpp"
#include "runtime/models/row_wise_model.hpp"
#include "runtime/training/image_store.hpp"
namespace mneme {

// Axes: n rows of a client, B rows of a step, D features, T taught classes.

/// What a teacher shows of a client's rows, in the order of its job; zeros of those that the loss does not compare.
struct taught_rows {
  at::Tensor features{}; ///< [n, D], or undefined: not wanted
  at::Tensor logits{};   ///< [n, T], or undefined
  /// Those at `positions` to features [B, D] and logits [B, T] at these places, where they are wanted; rows after them
  /// are zeros.
  void copy_to(std::span<const std::int64_t> positions, std::int64_t padded, float* features_to,
               float* logits_to) const;
};

/// A front or a teacher of one group of trainings, on a CPU. Rows are the same in every epoch. They pass in blocks of
/// one client's rows, so a client's bits do not depend on other clients. A net whose bits depend on the number of rows
/// gives a step the same values up to rounding.
class frozen_views {
public:
  frozen_views(const row_wise_model& net, const training_options& options, const parameter_choice& trained)
      : net_(net), options_(options), trained_(trained) {}
  /// True if no row of these changes from epoch to epoch.
  [[nodiscard]] static bool may_keep(const training_options& options, const train_job& job);

  /// True if everything up to the features is frozen.
  [[nodiscard]] bool has_front() const;
  /// The rows as their features, in the order of `samples`. @param weights [P]
  [[nodiscard]] sample_view behind_front(const sample_view& samples, const at::Tensor& weights, image_store& images);
  /// @param teacher [P]
  [[nodiscard]] taught_rows taught(const sample_view& samples, const teacher_view& view, const at::Tensor& teacher,
                                   image_store& images);

private:
  void show(const sample_view& samples, std::span<const std::int64_t> positions, const at::Tensor& weights,
            class_range classes, image_store& images, taught_rows& to);

  const row_wise_model& net_;
  const training_options& options_;
  const parameter_choice& trained_;
  tape kept_{};
  at::Tensor inputs_{};
};

} // namespace mneme
