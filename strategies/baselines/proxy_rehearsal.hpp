/// proxy_rehearsal: what PODNet and AFC have in common: proxies of classes, an NCA loss, maps of all stages that are
/// kept near the teacher's, and a head that is tuned on as many rows of each class when a task ends.
///
/// Douillard et al. 2020, "PODNet", and Kang et al. 2022, "Class-Incremental Learning by Knowledge Distillation with
/// Adaptive Feature Consolidation", as their programs compute them.
#pragma once
#include "strategies/baselines/rehearsal.hpp"
namespace mneme {

// Axes: R rows of a step, C classes of the loss, D features.

/// NCA as released: u = logits less their largest; -u_y + log(1 + sum over the others of exp u_j). The term of the
/// correct class is 1, so this is cross-entropy where y is the largest, and more elsewhere; the margin, which is
/// subtracted from all similarities, cancels. The gradient flows through the maximum.
[[nodiscard]] at::Tensor nca_rows(const at::Tensor& logits, const at::Tensor& labels);
[[nodiscard]] loss_ref nca_objective();
/// |u - v| of each row, where u are the squares of a map, summed over its width and over its height, concatenated, and
/// divided by their length (PODNet's "spatial" pooling). @param map, taught [R, channels, height, width]
[[nodiscard]] at::Tensor pooled_map_rows(const at::Tensor& map, const at::Tensor& taught);
/// Mean over channels of weight_c |u_c - v_c|, where u_c are the squares of channel c divided by their length (AFC).
/// @param weight [channels]
[[nodiscard]] at::Tensor channel_rows(const at::Tensor& map, const at::Tensor& taught, const at::Tensor& weight);

struct class_proxy_options {
  std::int64_t proxies = 10, tuning_epochs = 20;
  double tuning_rate = 0.05;
};

class proxy_rehearsal : public rehearsing_method {
public:
  [[nodiscard]] method_needs needs() const override;
  [[nodiscard]] diagnostics check(const method_setup& setup) const override;
  void prepare(const method_setup& setup) override;

protected:
  void proxy_keys(key_table& table);
  /// The maps that are distilled: one behind each stage of the net.
  [[nodiscard]] const std::vector<std::string>& maps() const { return maps_; }
  /// Local training: rows of the head of old classes keep their bits.
  [[nodiscard]] train_job proxy_training(const client_context& ctx, const broadcast& in, const rehearsal& now,
                                         loss_ref objective, bool distils) const;
  /// In the last round of a task, from task 2 on: the head, old proxies too, is tuned on balanced rows; else nothing
  /// changes.
  [[nodiscard]] task<tensors_ref> tuned_head(client_context& ctx, const broadcast& in, const rehearsal& now,
                                             tensors_ref weights) const;

private:
  class_proxy_options proxies_;
  std::vector<std::string> maps_;
  loss_ref nca_;
};

} // namespace mneme
