/// embedding_pool: embeddings that a server has received, by task, and batches drawn from them.
#pragma once
#include "runtime/base/archive.hpp"
#include "runtime/data/task_stream.hpp"
#include "strategies/shared/embedding_rows.hpp"
#include <map>
namespace mneme {

/// Retention rule of the pool.
enum class pool_kind : std::uint8_t {
  everything,
  reservoir, ///< A uniform sample per task and label of all rows received (Vitter 1985, Algorithm R).
};
/// Sampling rule of a batch.
enum class pool_balance : std::uint8_t {
  uniform,       ///< Every row has the same probability.
  task_balanced, ///< Equally many rows of every task; numbers differ by at most one.
};

/// Results depend only on the keys and the order of add() calls. Rows of a client stay in the pool after the client has
/// left.
class embedding_pool {
public:
  struct limits {
    pool_kind kind = pool_kind::reservoir;
    std::int64_t rows_max = 2400;      ///< reservoir: number of rows per task, shared evenly by the task's labels.
    std::vector<class_range> labels{}; ///< Labels of each task.
    rng_key stream{};                  ///< Base key of the reservoirs' draws.
  };
  explicit embedding_pool(limits bounds) : limits_(std::move(bounds)) {}

  /// Adds rows of a task. @param rows must have the same width F in all calls
  void add(task_id task, const embedding_rows& rows);

  [[nodiscard]] bool empty() const noexcept { return tasks_.empty(); }
  [[nodiscard]] std::int64_t size() const;
  [[nodiscard]] std::int64_t size(task_id task) const;
  /// Number of rows of a label in a task's part.
  [[nodiscard]] std::int64_t size(task_id task, std::int32_t label) const;
  /// Draws `batches` batches of `batch_rows` rows, concatenated; rows may repeat. @pre not empty()
  [[nodiscard]] embedding_rows drawn(std::int64_t batches, std::int64_t batch_rows, pool_balance balance,
                                     const rng_key& key) const;
  void persist(archive& state) { state(width_)(tasks_); }

private:
  struct part {
    std::vector<float> features{}; // [rows, F]
    std::vector<std::int32_t> labels{};
    std::vector<std::vector<std::size_t>> slots{}; // by label: its row indices
    std::vector<std::uint64_t> rows_met{};         // by label: number of rows received so far
    void persist(archive& state) { state(features)(labels)(slots)(rows_met); }
  };
  /// Returns the index for a new row: an existing row, the end of the part, or -1 to drop it.
  [[nodiscard]] std::int64_t slot_for(task_id task, part& to, std::int32_t label) const;
  [[nodiscard]] std::int64_t label_rows_max(task_id task, std::int32_t label) const;

  limits limits_;
  std::int64_t width_ = 0; // F
  std::map<task_id, part> tasks_;
};

} // namespace mneme
