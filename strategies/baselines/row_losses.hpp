/// row_losses: the losses that class-incremental methods are the sums of, row by row: cross-entropies, and five forms
/// of distillation that look alike.
#pragma once
#include "runtime/method/training.hpp"
namespace mneme {

// Axes: K models, B rows of a step, C classes of the loss, O of them old (the teacher's), D features.

/// Values of rows and their gradients by what they read.
struct row_losses {
  at::Tensor values{};   // [B]
  at::Tensor gradient{}; // [B, columns], or of features or a map
};

/// -log softmax(z)_y, or that of smoothed labels (loss_input::label_smoothing).
/// @param labels [B] int64 among the columns; those of padded rows may be anything
[[nodiscard]] row_losses cross_entropy_rows(const at::Tensor& logits, const at::Tensor& labels, double smoothing = 0.0);
/// Binary cross-entropies against `targets`, a mean over the columns. @param targets [B, columns]
[[nodiscard]] row_losses sigmoid_rows(const at::Tensor& logits, const at::Tensor& targets);

/// What holds the student's old columns z to the teacher's q, at temperature T, with p = softmax(q / T).
enum class distillation_form : std::uint8_t {
  cross_entropy, ///< -sum_c p_c log softmax(z / T)_c (PyCIL's iCaRL and BiC; BiC's own program).
  kl_scaled,     ///< T^2 KL(p || softmax(z / T)) (SS-IL, block by block).
  kl_elements,   ///< T^2 / O KL(...): a mean over elements (DyTox).
  kl_lucir,      ///< T^2 / 4 KL(...) (LUCIR's own baseline, whose T is 2).
  sigmoid,       ///< Binary cross-entropies against sigmoid(q), summed and divided by the classes seen (iCaRL).
};

struct distillation_rule {
  distillation_form form = distillation_form::cross_entropy;
  double temperature = 2.0;
  std::int64_t class_count = 0; ///< C: distillation_form::sigmoid.
};
/// @param student, teacher [B, O]
[[nodiscard]] row_losses distilled_rows(const at::Tensor& student, const at::Tensor& teacher,
                                        const distillation_rule& rule);

/// One model's step as a stepwise_loss reads it.
struct model_step {
  at::Tensor logits{}, features{};            ///< [B, C], [B, D]
  at::Tensor labels{};                        ///< [B] int64, 0 where padded
  at::Tensor weight{};                        ///< [B] float32, 0 where padded
  at::Tensor padded{};                        ///< [B] bool
  at::Tensor teacher{}, teacher_features{};   ///< [B, O], [B, D], or undefined
  std::vector<at::Tensor> maps, teacher_maps; ///< [B, channels, height, width] each
  at::Tensor targets{};                       ///< [B, C], or undefined
  std::int64_t replayed = 0;                  ///< The last so many of B, padding included, are of the second set.
  double label_smoothing = 0.0;               ///< As in loss_input.
};
/// Where it leaves what the step comes to: views of loss_output.
struct model_losses {
  std::vector<at::Tensor> terms{};     ///< [] float64 each
  at::Tensor d_logits{}, d_features{}; ///< [B, C]; [B, D], or undefined
  std::vector<at::Tensor> d_maps{};

  /// Adds `factor` * sum over rows of weight * loss to a term, and its gradient from column `low` on.
  void add(std::size_t term, const model_step& in, const row_losses& rows, double factor, std::int64_t low = 0) const;
  /// The same of map m: values [B], gradients [B, channels, height, width].
  void add_map(std::size_t term, const model_step& in, std::size_t m, const row_losses& rows, double factor) const;
  /// The same of features: gradients [B, D].
  void add_features(std::size_t term, const model_step& in, const row_losses& rows, double factor) const;
  /// The same without gradients: values [B].
  void add_values(std::size_t term, const model_step& in, const at::Tensor& values, double factor) const;
};

/// An objective that is computed model by model, so that the bits of one do not depend on the others.
class stepwise_loss : public loss {
public:
  /// @param identity as loss::identity() @param terms their names, at least one
  stepwise_loss(std::string identity, std::vector<const char*> terms, bool reads_features = false)
      : identity_(std::move(identity)), terms_(std::move(terms)), reads_features_(reads_features) {}
  [[nodiscard]] std::string identity() const final { return identity_; }
  [[nodiscard]] loss_output operator()(const loss_input& in) const final;
  [[nodiscard]] const char* main_term() const final { return terms_.front(); }

protected:
  virtual void add_model(const model_step& in, const model_losses& out) const = 0;

private:
  std::string identity_;
  std::vector<const char*> terms_;
  bool reads_features_;
};

} // namespace mneme
