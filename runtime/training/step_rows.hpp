/// step_rows: which rows clients see in a step, with what a loss is told of them, and their pixels.
#pragma once
#include "runtime/method/jobs.hpp"
#include "runtime/training/image_store.hpp"
#include "runtime/training/step_plan.hpp"
#include <span>
namespace mneme {

// Axes: K clients of a run, B rows of a step: the client's own, padded, then replayed ones, padded; C classes of the
// loss.

/// Positions of replayed rows: one shuffle of the second set after the other.
class replay_order {
public:
  /// @param plan steps of one shuffle; of a single step: steps go on into the next shuffle
  void begin(const train_job& job, const step_plan& plan);
  /// Positions of the rows of step `number`, counted over all epochs.
  [[nodiscard]] std::span<const std::int64_t> at(std::int64_t number);

private:
  void shuffle(std::int64_t pass);

  const train_job* job_ = nullptr;
  step_plan plan_{};
  std::int64_t pass_ = -1;
  std::vector<std::int64_t> shuffled_; // of pass_
  std::vector<std::int64_t> taken_;    // by the present step
};

/// What one client trains on.
struct client_training_rows {
  const train_job* job = nullptr;
  step_plan plan{};                ///< Steps of its own rows.
  step_plan replayed{};            ///< What joins these: step i of it the steps i, i + steps(), ... of all epochs.
  std::span<std::int64_t> order{}; ///< Positions of its own rows in this epoch.
  replay_order replay{};

  /// Rows that join step `number`, counted over all epochs: real ones, and padded.
  [[nodiscard]] std::int64_t replayed_rows(std::int64_t number) const {
    return replayed.rows == 0 ? 0 : replayed.rows_of(number % replayed.steps());
  }
  [[nodiscard]] std::int64_t replayed_padded(std::int64_t number) const {
    return replayed.rows == 0 ? 0 : replayed.padded_rows_of(number % replayed.steps());
  }
  /// Positions of its own rows in step s of the epoch.
  [[nodiscard]] std::span<const std::int64_t> positions_of(std::int64_t s) const {
    const auto first = plan.batch_rows == 0 ? 0 : s * plan.batch_rows;
    return order.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(plan.rows_of(s)));
  }
  /// Shuffles its own rows for `epoch`.
  void shuffle(std::int64_t epoch);
};

/// Steps fuse where these are equal.
struct step_shape {
  std::int64_t own = 0, replayed = 0; ///< Padding included.
  [[nodiscard]] std::int64_t rows() const { return own + replayed; }
  bool operator==(const step_shape&) const = default;
};

/// Where a client's part of a step is written.
struct row_marks {
  std::int64_t* labels = nullptr; ///< [B]
  float* weights = nullptr;       ///< [B]
  float* targets = nullptr;       ///< [B, C], or null
};

/// The rows of a step of a run of clients, one client's after the other's.
class step_rows {
public:
  explicit step_rows(const training_options& options) : options_(options) {}

  void clear();
  /// Appends a client's rows of step s and writes what the loss reads. Padded rows are zeros: what they compute is
  /// finite. Throws std::invalid_argument for a label that the loss does not cover.
  void add(client_training_rows& client, const step_shape& shape, std::int64_t epoch, std::int64_t s,
           const row_marks& to);
  /// Gathers all of them into out [K * B, C, H, W]: neighbours that read the same data set at once.
  void gather_into(at::Tensor& out, image_store& images) const;
  /// The same into memory of the host, of a single data set.
  void gather_into(float* out) const;

private:
  /// One set's rows of one step.
  struct part {
    const sample_view& samples;
    const row_notes& notes;
    std::span<const std::int64_t> positions; // of real rows
    std::int64_t padded = 0;
    float weight = 1.0F; // of a row
    augmentation_kind augment = augmentation_kind::none;
    std::int64_t draw = 0;               // augmentation and noise are drawn by it and by a row's
    std::optional<std::int64_t> place{}; // number within it: its position, or counted from here
  };
  void append(const part& rows, const rng_key& stream, const row_marks& to);
  void write_marks(const part& rows, std::span<const std::int64_t> listed, const row_marks& to) const;
  void write_targets(const part& rows, const row_marks& to) const;

  /// Rows from `first` on read this data set.
  struct source_run {
    const std::shared_ptr<const dataset>* source = nullptr;
    std::size_t first = 0;
  };
  const training_options& options_;
  std::vector<std::int64_t> rows_;
  std::vector<augmentation> augment_; // one per row, or empty
  std::vector<rng_key> noise_;        // one per row, or empty
  std::vector<source_run> runs_;
};

} // namespace mneme
