/// rehearsal: what the class-incremental methods that LGA is compared with (iCaRL, BiC, PODNet and others, Dong et al.
/// 2023, Tables 1 to 8) have in common here. Neither that paper nor its program says how they were federated, so all of
/// it is ours:
///
/// - a client remembers exemplars of the tasks that are over for it, and trains on them and its current rows. It fills
///   its memory when it takes part for the first time after a task, from the rows that it was given there, by features
///   of the model that it has received; a client that was not drawn for whole tasks catches up, task by task;
/// - the teacher is the model with which the federation's task began, equal for all and sent with every round;
/// - the server takes the mean of all weights and running statistics, by default unweighted;
/// - what a method does after its training at the end of a task, a client does in the last round of the task, after its
///   local epochs; what it learns there is uploaded with the weights.
#pragma once
#include "strategies/baselines/class_means.hpp"
#include "strategies/baselines/old_knowledge.hpp"
#include "strategies/shared/exemplar_memory.hpp"
#include "strategies/shared/row_losses.hpp"
namespace mneme {

enum class memory_scope : std::uint8_t { client, federation };
enum class class_readout : std::uint8_t { nearest_mean, argmax };

struct exemplar_options {
  std::int64_t memory_rows = 2000;
  memory_scope scope = memory_scope::client;
  exemplar_choice choice = exemplar_choice::greedy;
  class_readout readout = class_readout::argmax;
  bool mirrored = true; ///< Means are of mirrored images, too; rows that are no images are never mirrored.
};

/// Where the federation stands in its classes: every client is told.
struct class_split {
  std::int64_t task = 0; ///< From 0.
  class_range fresh{};   ///< Those of the newest task: n_old .. n.
  class_range before{};  ///< Those of the task before it.
  [[nodiscard]] std::int64_t old() const { return fresh.low; }
  [[nodiscard]] std::int64_t opened() const { return fresh.high; }
  /// n / s, the square root of which weighs what holds a net to its old self (LUCIR, PODNet).
  [[nodiscard]] double growth() const { return static_cast<double>(opened()) / static_cast<double>(fresh.size()); }
};

/// What a client begins its round with.
struct rehearsal {
  class_split classes{};
  tensors_ref start{};             ///< All weights that it has received.
  row_list current{}, exemplars{}; ///< Rows of its own task, and of those before.
  std::int64_t each = 0;           ///< Rows that the memory would have of a class if the current ones were in it.
  memory_ref memory{};             ///< Null: it stays as it is.
  bool is_last = false;            ///< The round is the last of its task.
  [[nodiscard]] row_list all_rows() const;
};

class rehearsing_method : public averaging_method {
public:
  /// @param usual the method's own read-out
  explicit rehearsing_method(class_readout usual = class_readout::argmax) { with_.readout = usual; }
  [[nodiscard]] method_needs needs() const override;
  [[nodiscard]] diagnostics check(const method_setup& setup) const override;
  void prepare(const method_setup& setup) override;
  [[nodiscard]] std::unique_ptr<server_half> make_server() const override;

protected:
  /// Binds the keys that all of them have.
  void memory_keys(key_table& table);
  /// Those of methods whose answers may be nearest means.
  void readout_keys(key_table& table);
  /// `with` its exemplars.
  [[nodiscard]] const exemplar_options& memory() const { return with_; }
  [[nodiscard]] class_split split_of(const round_place& place) const;
  [[nodiscard]] std::int64_t memory_rows(const method_setup& setup) const;

  // -- steps of a client's round --------------------------------------------------------------------------------------
  /// Brings the memory up to date.
  [[nodiscard]] task<rehearsal> recall(client_context& ctx, const broadcast& in) const;
  /// Local training on `rows`, over the classes seen; the teacher, from task 2 on, shows its logits of the old ones.
  /// The objective is the method's to set.
  [[nodiscard]] train_job training(const client_context& ctx, const broadcast& in, const rehearsal& now,
                                   row_list rows) const;
  /// As many rows of each class that the client knows: exemplars, and of its current classes what herding would choose
  /// now (Castro et al. 2018, EEIL).
  [[nodiscard]] task<row_list> balanced_rows(client_context& ctx, const rehearsal& now, tensors_ref weights) const;
  /// In the last round of a task sums of unit features for nearest means, else null: over all exemplars, and the rows
  /// of current classes that herding would choose now.
  [[nodiscard]] task<tensors_ref> class_sums(client_context& ctx, const rehearsal& now, tensors_ref weights) const;
  /// @param more what travels besides the weights; may be null
  [[nodiscard]] client_result result_of(const rehearsal& now, const tensors_ref& weights,
                                        const tensors_ref& more = nullptr) const;

  /// What exemplars are chosen by, of features of a net that has learnt so many tasks.
  [[nodiscard]] virtual at::Tensor herded_features(const at::Tensor& features, std::int64_t /*tasks*/) const {
    return features;
  }

private:
  [[nodiscard]] task<row_list> herded_now(client_context& ctx, const rehearsal& now, tensors_ref weights) const;

  exemplar_options with_;
  travelling_weights travelling_;
  bool mirrors_ = false; // a row of class means passes the net twice
  program_ref sums_;
};

/// Averages, teaches, and answers by nearest means after the last round of a task, where clients have sent sums.
class rehearsing_server : public teaching_server {
public:
  explicit rehearsing_server(const method_setup& setup)
      : teaching_server(setup), travelling_(setup.net, setup.trainable) {}
  task<task_plan> open_task(server_context& ctx, const round_place& place) override;
  void fold(const delivery& in) final;
  task<void> close_round(server_context& ctx, const round_place& place) override;
  [[nodiscard]] predictor predict() const override;
  void persist(archive& state) override;

protected:
  /// What an upload holds besides weights and class sums.
  virtual void fold_more(const delivery& /*in*/) {}
  /// After the average of a task's last round.
  virtual void end_task(const round_place& /*place*/) {}

private:
  travelling_weights travelling_;
  class_mean_sums sums_;
  bool by_means_ = false; // the last round of a task is over
};

} // namespace mneme
