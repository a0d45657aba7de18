/// proxy_rehearsal: shared base of PODNet and AFC. It has class proxies, the NCA loss and distillation of the maps of
/// all stages. At the end of a task it tunes the head on equally many rows of each class.
///
/// Loss terms are those of the official code of Douillard et al. 2020, "PODNet", and Kang et al. 2022,
/// "Class-Incremental Learning by Knowledge Distillation with Adaptive Feature Consolidation".
#pragma once
#include "strategies/baselines/rehearsal.hpp"
namespace mneme {

// Axes: R rows of a step, C classes of the loss, D features.

/// NCA loss of each row as in the official code: [R]. With u = logits - max of the row: -u_y + log(1 + sum over j != y
/// of exp u_j). It equals cross-entropy if y has the largest logit, and is larger otherwise. The official code
/// subtracts the paper's margin from all similarities, so the margin cancels. Gradients flow through the maximum.
/// @param logits [R, C] @param labels [R] int64
[[nodiscard]] at::Tensor nca_rows(const at::Tensor& logits, const at::Tensor& labels);
/// The objective with NCA as its only term.
[[nodiscard]] loss_ref nca_objective();
/// |u - v| of each row: [R]. The squared values of a map are summed over its width and over its height; u is the
/// concatenation of both sums, divided by its length. v is the same for the teacher's map (PODNet's "spatial" pooling).
/// @param map, teacher_output [R, channels, height, width]
[[nodiscard]] at::Tensor pooled_map_rows(const at::Tensor& map, const at::Tensor& teacher_output);
/// Mean over channels c of weight_c |u_c - v_c|: [R]. u_c are the squared values of channel c, divided by their length;
/// v_c is the same for the teacher's map (AFC).
/// @param map, teacher_output [R, channels, height, width] @param weight [channels]
[[nodiscard]] at::Tensor channel_rows(const at::Tensor& map, const at::Tensor& teacher_output,
                                      const at::Tensor& weight);

/// Proxies per class, and epochs and rate of the tuning.
struct class_proxy_options {
  std::int64_t proxies = 10, tuning_epochs = 20;
  double tuning_rate = 0.05;
};

/// Base class of PODNet and AFC.
class proxy_rehearsal : public rehearsing_method {
public:
  [[nodiscard]] method_needs needs() const override;
  [[nodiscard]] diagnostics check(const method_setup& setup) const override;
  void prepare(const method_setup& setup) override;

protected:
  /// Declares the keys of proxies and tuning.
  void proxy_keys(key_table& table);
  /// Names of the distilled maps: the output of each stage of the net.
  [[nodiscard]] const std::vector<std::string>& maps() const { return maps_; }
  /// A job for local training in which head rows of old classes are frozen.
  [[nodiscard]] train_job proxy_training(const client_context& ctx, const broadcast& in, const rehearsal_state& now,
                                         loss_ref objective, bool distils) const;
  /// In the last round of a task, from task 2 on, tunes the head on balanced rows, including the proxies of old
  /// classes. Otherwise returns `weights` unchanged.
  [[nodiscard]] task<tensors_ref> tune_head(client_context& ctx, const broadcast& in, const rehearsal_state& now,
                                            tensors_ref weights) const;

private:
  class_proxy_options proxies_;
  std::vector<std::string> maps_;
  loss_ref nca_;
};

} // namespace mneme
