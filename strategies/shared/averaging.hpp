/// averaging: upload sums, server half and client half of all methods that average weights (McMahan et al. 2017,
/// Algorithm 1).
#pragma once
#include "runtime/base/archive.hpp"
#include "runtime/method/strategy.hpp"
#include "runtime/training/folding.hpp"
#include <vector>
namespace mneme {

// -- sums of uploads --------------------------------------------------------------------------------------------------

/// Running weighted mean of uploads, in float64. Its memory does not grow with the number of uploads. Call add() in
/// delivery order: the order decides the last bits.
class weighted_average {
public:
  /// Adds an upload. A few uploads wait to be summed in one pass, so `value` must not change after the call.
  /// @param value [P] float32, contiguous
  /// @param weight > 0
  void add(const at::Tensor& value, double weight);
  [[nodiscard]] bool empty() const noexcept { return weight_ == 0.0; }
  /// Returns the mean [P], float32, and resets the sum. @pre not empty()
  [[nodiscard]] at::Tensor take();
  void persist(archive& state);

private:
  void fold_pending();

  at::Tensor sum_{};                     // [P] float64
  std::vector<weighted_upload> waiting_; // uploads that were added but are not in the sum yet
  double weight_ = 0.0;
};

/// Running sum of weighted changes c (w - start), in float64, where every upload has its own start. A start that
/// several uploads share is subtracted only once, so the cost is close to that of summing the uploads. Call add() in
/// delivery order: the order decides the last bits.
class weighted_change {
public:
  /// Adds an upload and the weights that its training started from. Neither tensor may change after the call.
  /// @param value, start [P] float32, contiguous
  /// @param weight > 0
  void add(const at::Tensor& value, const at::Tensor& start, double weight);
  [[nodiscard]] bool empty() const noexcept { return empty_; }
  /// Returns base + scale * sum [P], float32, and resets the sum. @pre not empty()
  [[nodiscard]] at::Tensor take(const at::Tensor& base, double scale);
  void persist(archive& state);

private:
  void fold_pending();
  void fold_starts();

  at::Tensor sum_{}; // [P] float64; its memory is reused after take()
  bool empty_ = true;
  std::vector<weighted_upload> waiting_; // uploads that were added but are not in the sum yet
  std::vector<weighted_upload> starts_;  // starts to subtract, in the order of their first uploads
};

// -- server half ------------------------------------------------------------------------------------------------------

/// Selects the tensors of a net that are sent in each round. If all weights are trained, they are sent as one tensor.
/// If only a head or adapters are trained, only these are sent. A client receives the frozen weights once, as initial
/// payload.
class transmitted_weights {
public:
  transmitted_weights() = default;
  transmitted_weights(model_ref net, trainable_part part);
  [[nodiscard]] bool whole() const noexcept { return trained_.empty(); }
  /// Returns the tensors of `flat` [P] that are sent.
  [[nodiscard]] tensors_ref pick(const at::Tensor& flat) const;
  /// Number of parameters that are sent, without running statistics.
  [[nodiscard]] std::int64_t parameters(const model& net) const;
  /// Returns `base` [P] with the tensors `traveled` written into it.
  [[nodiscard]] at::Tensor complete(const at::Tensor& base, const tensor_map& traveled) const;

private:
  std::vector<parameter> trained_; // empty if all weights are sent
};

/// Averages the uploads, weighted by rows or uniformly, and broadcasts the mean. In asynchronous runs it aggregates by
/// FedBuff (Nguyen et al. 2022) or FedAsync (Xie et al. 2019). Base class of the methods whose server averages weights.
class averaging_server : public server_half {
public:
  explicit averaging_server(const method_setup& setup);
  broadcast open_round(const round_info& info) override;
  void fold(const delivery& in) override;
  task<void> close_round(server_context& ctx, const round_info& info) override;
  [[nodiscard]] predictor predict() const override;
  /// "paper_params": parameters that a client uploads in the rounds of one task, without running statistics, as papers
  /// count them. Asynchronous runs (rounds.mode = "async") do not report it.
  [[nodiscard]] std::map<std::string, double> summary_metrics() const override;
  void persist(archive& state) override { state.frozen(weights_)(sums_)(changes_)(change_weight_); }

protected:
  /// Weights [P] at the start of the next round.
  [[nodiscard]] const at::Tensor& weights() const { return weights_; }
  /// Weight of one upload: its number of rows, or 1 under uniform weighting.
  [[nodiscard]] double weight_of(const delivery& in) const;
  /// The server step: replaces the weights by the mean of the folded uploads. Without uploads the weights stay.
  void average();
  /// Sets the weights [P] of the next round, after average(), for servers that modify the mean.
  void set_weights(at::Tensor weights) { weights_ = std::move(weights); }

private:
  void mix_in(const delivery& in);
  void fold_change(const delivery& in, double weight);
  [[nodiscard]] tensor_map take_means();
  [[nodiscard]] tensor_map take_changes();

  model_ref net_;
  upload_weighting weighting_;
  double old_model_share_;
  rounds_section rounds_;
  transmitted_weights transmitted_;
  at::Tensor weights_;                             // [P]
  tensors_ref frozen_;                             // initial payload; null if no weights are frozen
  std::map<std::string, weighted_average> sums_;   // one per uploaded tensor
  std::map<std::string, weighted_change> changes_; // FedBuff: one per uploaded tensor
  double change_weight_ = 0.0;                     // FedBuff: sum of c_k
};

// -- client half ------------------------------------------------------------------------------------------------------

/// Training data of one client in one round.
struct local_data {
  sample_view samples{};
  class_range classes{}; ///< Classes that the loss covers.
};
/// The job of a client's local training (Algorithm 1, ClientUpdate): starts from the broadcast weights and minimizes
/// cross-entropy with the options of this round.
[[nodiscard]] train_job local_training(const method_setup& setup, const client_context& ctx, const broadcast& in,
                                       local_data over);

/// The client half: local training from the broadcast weights. Derived methods override its hooks.
class averaging_method : public strategy {
public:
  [[nodiscard]] method_needs needs() const override { return {.upload_size_known = true}; }
  [[nodiscard]] upload_content uploads() const override { return upload_content::weights; }
  [[nodiscard]] diagnostics check(const method_setup& setup) const override;
  [[nodiscard]] bool uploads_models() const override { return uploads() != upload_content::other; }
  void prepare(const method_setup& setup) override;
  task<client_result> client_round(client_context& ctx, const broadcast& in) const override;
  [[nodiscard]] std::unique_ptr<server_half> make_server() const override;

protected:
  /// Returns the local objective. prepare() calls it once.
  [[nodiscard]] virtual loss_ref objective() const { return cross_entropy_objective(); }
  /// Classes that the loss of this round covers.
  [[nodiscard]] virtual class_range covered_classes(const round_info& info) const { return info.seen_classes; }
  /// Changes a client's job before training: teachers, tensors that the loss reads, or an objective for this round.
  virtual void adjust(train_job& /*job*/, const broadcast& /*in*/) const {}
  [[nodiscard]] const method_setup& setup() const { return setup_; }
  /// All weights of the net: `traveled`, completed by the frozen weights of the initial payload.
  [[nodiscard]] tensors_ref full_weights(const tensors_ref& traveled, const broadcast& in) const;

private:
  method_setup setup_;
  transmitted_weights transmitted_;
  loss_ref objective_;
};

} // namespace mneme
