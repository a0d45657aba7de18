/// averaging: the sums and the two halves that all weight-averaging methods share (McMahan et al. 2017, Algorithm 1).
#pragma once
#include "runtime/base/archive.hpp"
#include "runtime/method/strategy.hpp"
#include "runtime/training/folding.hpp"
#include <vector>
namespace mneme {

// -- sums of uploads --------------------------------------------------------------------------------------------------

/// The running mean of uploads, in float64. Sums as it goes, so memory does not grow with the cohort. Order of add()
/// decides the last bits: call it in delivery order.
class weighted_average {
public:
  /// A few values wait to be summed in one pass, so what is given is frozen, as tensors of a tensor_map are.
  /// @param value [P] float32, contiguous @param weight > 0
  void add(const at::Tensor& value, double weight);
  [[nodiscard]] bool empty() const noexcept { return weight_ == 0.0; }
  /// The mean as float32 [P]; forgets everything. @pre not empty()
  [[nodiscard]] at::Tensor take();
  void persist(archive& state);

private:
  void fold_waiting();

  at::Tensor sum_{};                     // [P] float64
  std::vector<weighted_upload> waiting_; // added and not yet in the sum
  double weight_ = 0.0;
};

/// The running sum of what uploads changed, c (w - start), in float64, where each began from weights of its own. Those
/// that share their start are told from it once, so a sum costs little more than one of the uploads alone. Order of
/// add() decides the last bits: call it in delivery order.
class weighted_change {
public:
  /// What is given is frozen, as tensors of a tensor_map are.
  /// @param value, start [P] float32, contiguous @param weight > 0
  void add(const at::Tensor& value, const at::Tensor& start, double weight);
  [[nodiscard]] bool empty() const noexcept { return empty_; }
  /// base + scale * sum as float32 [P]; forgets everything. @pre not empty()
  [[nodiscard]] at::Tensor take(const at::Tensor& base, double scale);
  void persist(archive& state);

private:
  void fold_waiting();
  void fold_starts();

  at::Tensor sum_{}; // [P] float64; kept for the next sum
  bool empty_ = true;
  std::vector<weighted_upload> waiting_; // added and not yet in the sum
  std::vector<weighted_upload> starts_;  // the same, to be subtracted; in the order of their first uploads
};

// -- the server half --------------------------------------------------------------------------------------------------

/// Which named tensors of a net travel: all weights as one, or, where only the head is trained, or adapters beside a
/// frozen body, what is trained, while the rest is sent at first contact.
class travelling_weights {
public:
  travelling_weights() = default;
  travelling_weights(model_ref net, trainable_part part);
  [[nodiscard]] bool whole() const noexcept { return trained_.empty(); }
  /// The tensors of `flat` [P] that travel.
  [[nodiscard]] tensors_ref pick(const at::Tensor& flat) const;
  /// Parameters that travel, running statistics aside.
  [[nodiscard]] std::int64_t parameters(const model& net) const;
  /// `base` [P] with the tensors that travelled put in their places.
  [[nodiscard]] at::Tensor complete(const at::Tensor& base, const tensor_map& travelled) const;

private:
  std::vector<parameter> trained_; // empty: everything travels
};

/// Averages uploads weighted by rows (or uniformly) and broadcasts the mean. Where the server steps as uploads come, it
/// does so by FedBuff (Nguyen et al. 2022) or FedAsync (Xie et al. 2019). Methods whose server averages derive from it
/// and add to its steps.
class averaging_server : public server_half {
public:
  explicit averaging_server(const method_setup& setup);
  broadcast open_round(const round_place& place) override;
  void fold(const delivery& in) override;
  task<void> close_round(server_context& ctx, const round_place& place) override;
  [[nodiscard]] predictor predict() const override;
  /// "paper_params": what a client sends in the rounds of a task, as papers count it: parameters that travel, running
  /// statistics aside. Not where clients come and go (rounds.mode = "async").
  [[nodiscard]] std::map<std::string, double> figures() const override;
  void persist(archive& state) override { state.frozen(weights_)(sums_)(changes_)(change_weight_); }

protected:
  /// The weights [P] that the next round starts from.
  [[nodiscard]] const at::Tensor& weights() const { return weights_; }
  /// What one upload counts for: its rows, or as much as any other.
  [[nodiscard]] double weight_of(const delivery& in) const;
  /// The server step: the weights become the mean of what was folded.
  void average();
  /// After average(): what the server itself has made of the mean.
  void go_on_from(at::Tensor weights) { weights_ = std::move(weights); }

private:
  void mix_in(const delivery& in);
  void fold_change(const delivery& in, double weight);
  [[nodiscard]] tensor_map take_means();
  [[nodiscard]] tensor_map take_changes();

  model_ref net_;
  upload_weighting weighting_;
  double keep_share_;
  rounds_section rounds_;
  travelling_weights travelling_;
  at::Tensor weights_;                             // [P]
  tensors_ref frozen_;                             // sent at first contact, where not everything travels
  std::map<std::string, weighted_average> sums_;   // one per travelling tensor
  std::map<std::string, weighted_change> changes_; // the same: FedBuff
  double change_weight_ = 0.0;                     // sum of c_k: FedBuff
};

// -- the client half --------------------------------------------------------------------------------------------------

/// What a client learns from in a round.
struct local_data {
  sample_view samples{};
  class_range classes{}; ///< The loss covers these.
};
/// The job of a client's local training (Algorithm 1, ClientUpdate): from the broadcast weights, by cross-entropy, with
/// this round's options.
[[nodiscard]] train_job local_training(const method_setup& setup, const client_context& ctx, const broadcast& in,
                                       local_data over);

/// The client half: local training from the broadcast weights, with hooks for what differs.
class averaging_method : public strategy {
public:
  [[nodiscard]] method_needs needs() const override { return {.upload_size_known = true}; }
  [[nodiscard]] diagnostics check(const method_setup& setup) const override;
  void prepare(const method_setup& setup) override;
  task<client_result> client_round(client_context& ctx, const broadcast& in) const override;
  [[nodiscard]] std::unique_ptr<server_half> make_server() const override;

protected:
  /// The local objective; made once, in prepare().
  [[nodiscard]] virtual loss_ref objective() const { return cross_entropy_objective(); }
  /// The classes that the loss of a round covers.
  [[nodiscard]] virtual class_range covered(const round_place& place) const { return place.opened; }
  /// What else differs in a client's training: a teacher, tensors its loss reads, an objective of the round's own.
  virtual void adjust(train_job& /*job*/, const broadcast& /*in*/) const {}
  [[nodiscard]] const method_setup& setup() const { return setup_; }
  /// All weights of the net: those that travel in `travelled`, the others as the first contact has brought them.
  [[nodiscard]] tensors_ref whole_weights(const tensors_ref& travelled, const broadcast& in) const;

private:
  method_setup setup_;
  travelling_weights travelling_;
  loss_ref objective_;
};

} // namespace mneme
