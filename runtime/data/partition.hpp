/// partition: assigns the training rows of each task to clients.
#pragma once
#include "runtime/base/rng.hpp"
#include "runtime/data/task_stream.hpp"
#include <functional>
namespace mneme {

/// A column of partition.file for the method, with integers from 0.
struct partition_column_spec {
  std::string name{};     ///< "" if the method has no column.
  std::int64_t below = 0; ///< Exclusive upper bound of the column's numbers.
};

/// Immutable and thread-safe. Kinds with one owner per row store 4 bytes per row, and 4 bytes per client and task. The
/// kinds class-share and sampled store nothing per client.
class partition {
public:
  virtual ~partition() = default;
  /// Number of rows of `client` in `task`. Takes O(1); for class-share, O(classes of the task).
  [[nodiscard]] virtual std::int64_t size(client_id client, task_id task) const = 0;
  /// The rows of `client` in `task`, as ascending row indices of task_stream::train.
  [[nodiscard]] virtual std::vector<std::int64_t> rows(client_id client, task_id task) const = 0;
  /// The method's column of partition.file for the same rows. Empty if the method has no column.
  [[nodiscard]] virtual std::vector<std::int32_t> marks(client_id /*client*/, task_id /*task*/) const { return {}; }
  /// Number of rows in partition.file that no client gets because data.test_share has moved them to the test split.
  [[nodiscard]] virtual std::int64_t drawn_rows() const { return 0; }
};

/// Returns the clients enrolled in a task, ascending.
using enrolled_clients = std::function<std::vector<std::uint32_t>(task_id)>;

/// Splits every task over `from.clients.count` clients, or over the clients enrolled in it, by the kind in
/// `from.partition`. Draws depend only on the seed, the class and, unless the split is per run, the task. Impossible
/// splits are errors: dirichlet-capped that leaves a client without rows 10,000 times, or a file with unknown rows or
/// clients.
/// @param marks the column of partition.file that the method reads
/// @param enrolled used for partition.over = "enrolled" in kinds with one owner per row; null: all clients
[[nodiscard]] expected<std::shared_ptr<const partition>> make_partition(const scenario& from,
                                                                        std::shared_ptr<const task_stream> tasks,
                                                                        const partition_column_spec& marks = {},
                                                                        const enrolled_clients& enrolled = nullptr);

} // namespace mneme
