/// embedding_pool: the embeddings that a server has received, task by task, and batches drawn from them.
#pragma once
#include "runtime/base/archive.hpp"
#include "runtime/data/task_stream.hpp"
#include "strategies/shared/embedding_rows.hpp"
#include <map>
namespace mneme {

/// What a pool keeps of what it is given.
enum class pool_kind : std::uint8_t {
  everything,
  reservoir, ///< A uniform sample, for each task and label, of all that ever came (Vitter 1985, Algorithm R).
};
/// How rows of a batch are drawn.
enum class pool_balance : std::uint8_t {
  uniform,       ///< Every row of the pool alike.
  task_balanced, ///< As many rows of every task, to within one.
};

/// Everything depends on the order of add() and on keys only. A client that has left keeps its place here.
class embedding_pool {
public:
  struct limits {
    pool_kind kind = pool_kind::reservoir;
    std::int64_t rows_max = 2400;      ///< reservoir: of a task; its labels share them alike.
    std::vector<class_range> labels{}; ///< By task: those that occur in it.
    rng_key stream{};                  ///< What the reservoirs draw is keyed below it.
  };
  explicit embedding_pool(limits bounds) : limits_(std::move(bounds)) {}

  /// @param rows of one width F in all calls
  void add(task_id task, const embedding_rows& rows);

  [[nodiscard]] bool empty() const noexcept { return tasks_.empty(); }
  [[nodiscard]] std::int64_t size() const;
  [[nodiscard]] std::int64_t size(task_id task) const;
  /// How many rows of a label a task's part holds.
  [[nodiscard]] std::int64_t size(task_id task, std::int32_t label) const;
  /// The rows of `batches` batches of `batch_rows`, one after the other; a row may come several times. @pre not empty()
  [[nodiscard]] embedding_rows drawn(std::int64_t batches, std::int64_t batch_rows, pool_balance balance,
                                     const rng_key& key) const;
  void persist(archive& state) { state(width_)(tasks_); }

private:
  struct part {
    std::vector<float> features{}; // [rows, F]
    std::vector<std::int32_t> labels{};
    std::vector<std::vector<std::size_t>> slots{}; // by label, from the task's first: the rows it has
    std::vector<std::uint64_t> rows_met{};         // the same: rows that ever came
    void persist(archive& state) { state(features)(labels)(slots)(rows_met); }
  };
  /// Where a row that comes now is put: a row of the part, one behind its last, or nowhere (-1).
  [[nodiscard]] std::int64_t place_for(task_id task, part& to, std::int32_t label) const;
  [[nodiscard]] std::int64_t label_rows_max(task_id task, std::int32_t label) const;

  limits limits_;
  std::int64_t width_ = 0; // F
  std::map<task_id, part> tasks_;
};

} // namespace mneme
