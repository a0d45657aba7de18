/// fused_training: trains K clients as one group, step by step.
#pragma once
#include "runtime/method/jobs.hpp"
#include "runtime/models/dense_chain.hpp"
#include "runtime/training/group_teacher.hpp"
#include "runtime/training/loss_sums.hpp"
#include "runtime/training/optimizers.hpp"
#include "runtime/training/program_batch.hpp"
#include "runtime/training/step_rows.hpp"
#include <map>
#include <span>
namespace mneme {

// Axes: K clients of a group, P weights of a model, B rows of a step.

/// Memory that is reused by the successive trainings of one executor.
struct training_buffers {
  at::Tensor gradients{};                         ///< [K, P rounded up to whole cache lines]
  at::Tensor inputs{};                            ///< [K, B, C, H, W]
  at::Tensor labels{}, row_weight{};              ///< [K, B] on the device
  at::Tensor targets{};                           ///< [K, B, C] on the device
  at::Tensor host_labels{}, host_row_weight{};    ///< [K, B] on the host, if inputs are on a device
  at::Tensor host_targets{};                      ///< [K, B, C] on the host, if inputs are on a device
  std::vector<float> row_values{}, row_weights{}; ///< [B, C, H, W] and [B], of one client
  std::vector<std::int64_t> row_labels{};         ///< [B]
  std::vector<std::int64_t> order{};              ///< Row positions of an epoch, client by client.
  tape kept{}, kept_of_replayed{}, of_teacher{};
  moment_buffers moments{};
};

/// One group of trainings. Clients are sorted by their number of steps, then by the padded size of the last step. The
/// clients that take part in a step are therefore the first ones, and clients with equally padded steps are adjacent.
/// No weights are copied, and no client is padded to another client's size. Nets of fully connected layers are trained
/// client by client instead, with the same bits, so that a step fits into the first-level caches.
class fused_training {
public:
  /// @pre `batch` is not empty and has train_jobs of one fuse key
  fused_training(std::span<const job> batch, image_store& images, training_buffers& buffers);
  /// Returns the outcomes in the order of the batch. Passes on exceptions of LibTorch, the net and the loss. If
  /// `monitor` stops the run between two steps, unfinished jobs have the outcome interrupted_text; null: the run is not
  /// stopped.
  [[nodiscard]] outcomes run(slice_monitor* monitor = nullptr);

private:
  struct client : client_training_rows {
    std::size_t place = 0;                 // index in the batch
    at::Tensor start{};                    // [P] on the device
    std::unique_ptr<train_job> in_front{}; // the job with features in place of rows; set if the net's front is frozen
    std::unique_ptr<training_observer> observer{}; // null: the training is not observed
    bool finite = true;                            // used on a device; true: the client's weights are finite
  };
  /// Views of the weights and gradients of adjacent clients, created once.
  struct group_view {
    at::Tensor weights{}, gradients{};
  };

  void place_orders();
  void take_memory();
  void take_weights();
  void keep_frozen_views();
  void begin_epoch(std::size_t k, std::int64_t epoch);
  void step(std::int64_t epoch, std::int64_t s, std::int64_t active);
  /// Runs one step of adjacent clients with equal step shapes.
  void step_of(model_run run, const step_shape& shape, std::int64_t epoch, std::int64_t s);
  [[nodiscard]] activations forward(group_view& group, const step_shape& shape, const training_mode& training);
  void backward(group_view& group, const step_shape& shape, const loss_output& result);
  std::span<const rng_key> name_streams(model_run run, std::int64_t epoch, std::int64_t s);
  [[nodiscard]] bool trains_one_by_one() const;
  outcomes run_one_by_one(slice_monitor* monitor);
  [[nodiscard]] bool train_alone(dense_chain& net, std::size_t k, slice_monitor* monitor);
  void prefetch_rows(model_run run, std::int64_t s) const;
  void fill(model_run run, const step_shape& shape, std::int64_t epoch, std::int64_t s);
  void mark_tokens();
  void shape_marks(model_run run, std::int64_t rows);
  [[nodiscard]] std::vector<activations> teacher_outputs(model_run run, const step_shape& shape, std::int64_t s);
  [[nodiscard]] bool is_padded(model_run run, const step_shape& shape, std::int64_t epoch, std::int64_t s) const;
  void regularize(model_run run, std::int64_t epoch);
  void observe(model_run run, std::int64_t epoch, const activations& outputs, const at::Tensor& losses);
  void take_result_memory();
  void record_gradients(model_run run, std::int64_t s);
  void copy_to_host();
  group_view& view_of(model_run run);
  [[nodiscard]] const at::Tensor& start_of(const client& trained) const;
  [[nodiscard]] job_outcome outcome_of(const client& trained, std::int64_t k) const;
  [[nodiscard]] std::string failure_of(const client& trained, const at::Tensor& result) const;

  const training_options options_;
  const model& net_;
  const row_wise_model* row_wise_ = nullptr; // the net as a row_wise_model; null if it is none
  loss_ref loss_;
  image_store& images_;
  training_buffers& buffers_;
  bool direct_;           // true for plain SGD: gradients are added to the weights directly
  bool has_soft_targets_; // true: rows have soft targets in place of labels
  bool features_of_frozen_ = false;
  const std::int64_t positions_; // predictions per row: T of a net that predicts tokens, else 1
  parameter_choice choice_;
  std::vector<segment> trained_;
  std::vector<client> clients_;                                // sorted; clients without steps come last
  std::vector<std::shared_ptr<const tensor_map>> auxiliaries_; // [K] auxiliary tensors, in the order of clients_
  std::vector<group_teacher> teachers_;                        // one per entry of training_options::teachers
  loss_sums losses_;                                           // losses of the epoch
  at::Tensor weights_, gradients_;                             // [K, P]
  at::Tensor result_;                                          // sums of gradients, if they are the result of the
                                                               // training
  std::map<std::pair<std::int64_t, std::int64_t>, group_view> views_;
  std::unique_ptr<optimizer> optimizer_;
  std::vector<rng_key> streams_, streams_of_replayed_; // keys of the step's passes, one per model
  step_rows rows_;                                     // rows of the step, client by client
};

} // namespace mneme
