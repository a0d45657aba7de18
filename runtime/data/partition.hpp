/// partition: assigns the training rows of each task to clients.
#pragma once
#include "runtime/base/rng.hpp"
#include "runtime/data/task_stream.hpp"
#include <functional>
namespace mneme {

/// A column of integers from 0 in partition.file, which the method reads.
struct row_mark_column {
  std::string name{};     ///< "": none.
  std::int64_t below = 0; ///< Exclusive upper bound of the numbers.
};

/// Immutable, so any thread may read it. Kinds with one owner per row store 4 bytes per row, and per client and task;
/// class-share and sampled store nothing per client.
class partition {
public:
  virtual ~partition() = default;
  /// Number of rows of `client` in `task`. O(1); class-share: O(classes of the task).
  [[nodiscard]] virtual std::int64_t size(client_id client, task_id task) const = 0;
  /// The rows of `client` in `task` as rows of task_stream::train, ascending.
  [[nodiscard]] virtual std::vector<std::int64_t> rows(client_id client, task_id task) const = 0;
  /// The method's column of partition.file for these rows; empty if the method has no column.
  [[nodiscard]] virtual std::vector<std::int32_t> marks(client_id /*client*/, task_id /*task*/) const { return {}; }
  /// Number of rows in partition.file that no client holds, because data.test_share selected them for testing.
  [[nodiscard]] virtual std::int64_t drawn_rows() const { return 0; }
};

/// Clients enrolled in a task, ascending.
using enrolled_clients = std::function<std::vector<std::uint32_t>(task_id)>;

/// Splits every task over `from.clients.count` clients, or over the clients enrolled in it, as `from.partition` says.
/// Draws depend only on the seed, the task (unless per-run) and the class. Impossible splits are diagnostics:
/// dirichlet-capped that leaves a client empty 10,000 times, or a file with unknown rows or clients.
/// @param marks the column of partition.file that the method reads
/// @param enrolled used if partition.over = "enrolled", for kinds in which a row has one owner; null: all clients
[[nodiscard]] expected<std::shared_ptr<const partition>> make_partition(const scenario& from,
                                                                        std::shared_ptr<const task_stream> tasks,
                                                                        const row_mark_column& marks = {},
                                                                        const enrolled_clients& enrolled = nullptr);

} // namespace mneme
