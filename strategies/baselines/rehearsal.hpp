/// rehearsal: shared base of the class-incremental methods in LGA's comparison (iCaRL, BiC, PODNet and others; Dong et
/// al. 2023, Tables 1 to 8). Neither that paper nor its code states how they were federated, so the following is ours:
///
/// - A client trains on its current rows and on exemplars of finished tasks. It selects the exemplars of a task in its
///   first round after the task, by features of the received model. A client that was not drawn for whole tasks selects
///   the exemplars of these tasks in the order of tasks.
/// - The teacher is the global model at the start of the task. It is sent in every round.
/// - The server averages all weights and running statistics, by default unweighted.
/// - Steps that a method adds at the end of a task run on the clients in the last round of the task, after local
///   training. Their results are uploaded with the weights.
#pragma once
#include "strategies/baselines/class_means.hpp"
#include "strategies/baselines/old_model_distillation.hpp"
#include "strategies/shared/exemplar_memory.hpp"
#include "strategies/shared/row_losses.hpp"
namespace mneme {

/// Scope of the memory size: each client, or all clients together.
enum class memory_scope : std::uint8_t { client, federation };
/// Classification after the last round of a task.
enum class class_readout : std::uint8_t { nearest_mean, argmax };

/// Options of the exemplar memory and of classification.
struct exemplar_options {
  std::int64_t memory_rows = 2000;
  memory_scope scope = memory_scope::client;
  exemplar_choice choice = exemplar_choice::greedy;
  class_readout readout = class_readout::argmax;
  bool mirrored = true; ///< True: class means include mirrored images. Rows that are not images are never mirrored.
};

/// Classes seen by the federation. Every client receives this split.
struct class_split {
  std::int64_t task = 0; ///< Current task, from 0.
  class_range fresh{};   ///< Classes of the current task: n_old .. n - 1.
  class_range before{};  ///< Classes of the previous task.
  [[nodiscard]] std::int64_t old() const { return fresh.low; }
  [[nodiscard]] std::int64_t opened() const { return fresh.high; }
  /// n / s. Its square root is a factor of distillation weights (LUCIR, PODNet).
  [[nodiscard]] double growth() const { return static_cast<double>(opened()) / static_cast<double>(fresh.size()); }
};

/// State of a client at the start of its round.
struct rehearsal_state {
  class_split classes{};
  tensors_ref start{};             ///< All weights that the client received.
  row_list current{}, exemplars{}; ///< Rows of the client's task; exemplars of earlier tasks.
  std::int64_t each = 0;           ///< Number of rows per class in the memory once it contains the current classes.
  memory_ref memory{};             ///< New memory; null if it does not change.
  bool is_last = false;            ///< True: this is the last round of a task.
  [[nodiscard]] row_list all_rows() const;
};

/// Base class of the client halves.
class rehearsing_method : public averaging_method {
public:
  /// @param usual default value of the key `readout`
  explicit rehearsing_method(class_readout usual = class_readout::argmax) { options_.readout = usual; }
  [[nodiscard]] method_needs needs() const override;
  [[nodiscard]] upload_content uploads() const override { return upload_content::weights_and_more; }
  [[nodiscard]] diagnostics check(const method_setup& setup) const override;
  void prepare(const method_setup& setup) override;
  [[nodiscard]] std::unique_ptr<server_half> make_server() const override;

protected:
  /// Declares the keys of the exemplar memory, common to all methods.
  void memory_keys(key_table& table);
  /// Declares the keys of nearest-mean classification.
  void readout_keys(key_table& table);
  /// The options of the exemplar memory.
  [[nodiscard]] const exemplar_options& memory() const { return options_; }
  /// The classes seen in the round `info`.
  [[nodiscard]] class_split split_of(const round_info& info) const;
  /// Capacity of one client's memory, in rows.
  [[nodiscard]] std::int64_t memory_rows(const method_setup& setup) const;

  // -- steps of a client's round --------------------------------------------------------------------------------------
  /// Selects the exemplars of newly finished tasks. Returns the client's state for this round.
  [[nodiscard]] task<rehearsal_state> load_rehearsal(client_context& ctx, const broadcast& in) const;
  /// Local training on `rows` over the classes seen. From task 2 on, the job has the teacher's logits of the old
  /// classes. The caller sets the objective.
  [[nodiscard]] train_job training(const client_context& ctx, const broadcast& in, const rehearsal_state& now,
                                   row_list rows) const;
  /// Chooses equally many rows of each class that the client has: exemplars, and rows of current classes that herding
  /// selects with features of `weights` (Castro et al. 2018, EEIL).
  [[nodiscard]] task<row_list> choose_balanced_rows(client_context& ctx, const rehearsal_state& now,
                                                    tensors_ref weights) const;
  /// In the last round of a task, returns sums of unit features over all exemplars and over the rows of current classes
  /// that herding selects. Otherwise returns null.
  [[nodiscard]] task<tensors_ref> class_sums(client_context& ctx, const rehearsal_state& now,
                                             tensors_ref weights) const;
  /// Makes the upload and the new memory. @param more tensors to upload with the weights; may be null
  [[nodiscard]] client_result result_of(const rehearsal_state& now, const tensors_ref& weights,
                                        const tensors_ref& more = nullptr) const;

  /// Returns the features with which exemplars are selected. @param features [n, D]
  /// @param tasks number of tasks that the net was trained on
  [[nodiscard]] virtual at::Tensor herd_features(const at::Tensor& features, std::int64_t /*tasks*/) const {
    return features;
  }

private:
  [[nodiscard]] task<row_list> herd_current_rows(client_context& ctx, const rehearsal_state& now,
                                                 tensors_ref weights) const;

  exemplar_options options_;
  transmitted_weights transmitted_;
  bool mirrors_ = false; // true: class means include mirrored images, at the cost of a second forward pass
  program_ref sums_;
};

/// Averages weights and sends the teacher. After the last round of a task, classifies by nearest means if clients
/// uploaded sums.
class rehearsing_server : public teacher_server {
public:
  explicit rehearsing_server(const method_setup& setup)
      : teacher_server(setup), transmitted_(setup.net, setup.trainable) {}
  task<task_plan> open_task(server_context& ctx, const round_info& info) override;
  void fold(const delivery& in) final;
  task<void> close_round(server_context& ctx, const round_info& info) override;
  [[nodiscard]] predictor predict() const override;
  void persist(archive& state) override;

protected:
  /// Handles the tensors of an upload other than weights and class sums.
  virtual void fold_more(const delivery& /*in*/) {}
  /// Called after the uploads of a task's last round are averaged.
  virtual void end_task(const round_info& /*place*/) {}

private:
  transmitted_weights transmitted_;
  class_mean_sums sums_;
  bool by_means_ = false; // true after the last round of a task
};

} // namespace mneme
