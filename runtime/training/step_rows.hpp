/// step_rows: row numbers, pixels, labels, weights and targets of the clients' rows in a step.
#pragma once
#include "runtime/method/jobs.hpp"
#include "runtime/training/image_store.hpp"
#include "runtime/training/step_plan.hpp"
#include <span>
namespace mneme {

// Axes: K clients of a run; B rows of a client in a step (its own rows, then its replayed rows, both padded); C classes
// of the loss.

/// Positions of replayed rows, from successive shuffles of the replay set. In a job with a second view they are those
/// of the job's own rows.
class replay_order {
public:
  /// @param plan steps per shuffle; with a single step, later steps continue into the next shuffle
  void begin(const train_job& job, const step_plan& plan);
  /// Positions of the rows of step `number`, counted over all epochs; valid until the next call.
  [[nodiscard]] std::span<const std::int64_t> at(std::int64_t number);

private:
  void shuffle(std::int64_t pass);

  const train_job* job_ = nullptr;
  bool is_second_view_ = false; // true: shuffles are those of the job's own rows
  step_plan plan_{};
  std::int64_t pass_ = -1;
  std::vector<std::int64_t> shuffled_; // positions in shuffle number pass_
  std::vector<std::int64_t> taken_;    // result of the last call of at()
};

/// Training rows of one client.
struct client_training_rows {
  const train_job* job = nullptr;
  step_plan plan{};     ///< Steps of the client's own rows in an epoch.
  step_plan replayed{}; ///< Steps of the client's replayed rows. Their step i joins steps i, i + steps(), ... of all
                        ///< epochs.
  std::span<std::int64_t> order{}; ///< Positions of the client's own rows in this epoch.
  replay_order replay{};

  /// Number of replayed rows in step `number`, counted over all epochs, without and with padding.
  [[nodiscard]] std::int64_t replayed_rows(std::int64_t number) const {
    return replayed.rows == 0 ? 0 : replayed.rows_of(number % replayed.steps());
  }
  [[nodiscard]] std::int64_t replayed_padded(std::int64_t number) const {
    return replayed.rows == 0 ? 0 : replayed.padded_rows_of(number % replayed.steps());
  }
  /// Positions of the client's own rows in step s of the epoch.
  [[nodiscard]] std::span<const std::int64_t> positions_of(std::int64_t s) const {
    const auto first = plan.batch_rows == 0 ? 0 : s * plan.batch_rows;
    return order.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(plan.rows_of(s)));
  }
  /// Shuffles the client's own rows for `epoch`.
  void shuffle(std::int64_t epoch);
};

/// Row counts of a step. Steps of equal shapes are fused.
struct step_shape {
  std::int64_t own = 0, replayed = 0; ///< Padding included.
  [[nodiscard]] std::int64_t rows() const { return own + replayed; }
  bool operator==(const step_shape&) const = default;
};

/// Memory to which a client's part of a step is written.
struct step_targets {
  std::int64_t* labels = nullptr; ///< [B]
  float* weights = nullptr;       ///< [B]
  float* targets = nullptr;       ///< [B, C], or null
};

/// Rows of a step for adjacent clients, in their order.
class step_rows {
public:
  /// @param reads_labels false: labels of the data set are replaced later, so they need not be covered by the loss
  explicit step_rows(const training_options& options, bool reads_labels = true)
      : options_(options), reads_labels_(reads_labels) {}

  void clear();
  /// Appends a client's rows of step s and writes labels, weights and targets. Padded rows are zeros, so their outputs
  /// are finite. Throws std::invalid_argument for a label that the loss does not cover.
  void add(client_training_rows& client, const step_shape& shape, std::int64_t epoch, std::int64_t s,
           const step_targets& to);
  /// Gathers all rows into out [K * B, C, H, W]. Adjacent rows of one data set are gathered in one call.
  void gather_into(at::Tensor& out, image_store& images) const;
  /// Gathers all rows to `out` on the host. @pre they belong to one data set
  void gather_into(float* out) const;

private:
  /// A client's own rows, or its replayed rows, in one step.
  struct part {
    const sample_view& samples;
    const row_annotations& annotations;
    std::span<const std::int64_t> positions; // positions of the part's rows, without padding
    std::int64_t padded = 0;
    float weight = 1.0F; // weight of each row
    augmentation_kind augment = augmentation_kind::none;
    std::int64_t draw = 0;               // epoch or step number; part of the keys of augmentation and noise
    std::optional<std::int64_t> place{}; // row number of the first row in these keys; unset: positions are used
  };
  void append(const part& rows, const rng_key& stream, const step_targets& to);
  void write_marks(const part& rows, std::span<const std::int64_t> listed, const step_targets& to) const;
  void write_targets(const part& rows, const step_targets& to) const;

  /// All rows from `first` to the next run belong to this data set.
  struct source_run {
    const std::shared_ptr<const dataset>* source = nullptr;
    std::size_t first = 0;
  };
  const training_options& options_;
  bool reads_labels_;
  std::vector<std::int64_t> rows_;
  std::vector<augmentation> augment_; // one entry per row, or empty
  std::vector<rng_key> noise_;        // one entry per row, or empty
  std::vector<source_run> runs_;
};

} // namespace mneme
