/// partition: which training rows each client holds in each task.
#pragma once
#include "runtime/base/rng.hpp"
#include "runtime/data/task_stream.hpp"
#include <functional>
namespace mneme {

/// A column of whole numbers from 0 in partition.file.
struct row_mark_column {
  std::string name{};     ///< "": none.
  std::int64_t below = 0; ///< All numbers are.
};

/// Const once made: read by any thread. Kinds with one owner per row keep 4 bytes per row, and per
/// client and task; class-share and sampled keep nothing per client.
class partition {
public:
  virtual ~partition() = default;
  /// How many rows `client` holds in `task`; O(1), class-share: O(classes of the task).
  [[nodiscard]] virtual std::int64_t size(client_id client, task_id task) const = 0;
  /// Those rows, ascending, as rows of task_stream::train.
  [[nodiscard]] virtual std::vector<std::int64_t> rows(client_id client, task_id task) const = 0;
  /// The values of the method's column of partition.file for those rows; empty where the method needs none.
  [[nodiscard]] virtual std::vector<std::int32_t> marks(client_id /*client*/, task_id /*task*/) const { return {}; }
  /// Rows that partition.file names and no client holds, because data.test_share has drawn them for the test.
  [[nodiscard]] virtual std::int64_t drawn_rows() const { return 0; }
};

/// Clients enrolled in a task, ascending.
using enrolled_clients = std::function<std::vector<std::uint32_t>(task_id)>;

/// Splits every task over `from.clients.count` clients, or those enrolled in it, by `from.partition`. Draws depend on
/// the seed, the task (unless per-run) and the class only. Impossible splits are diagnostics: a
/// dirichlet-capped that leaves a client empty 10,000 times, a file whose rows or clients do not exist.
/// @param marks the column of partition.file that the method reads
/// @param enrolled read where partition.over = "enrolled", for kinds in which a row has one owner; null: everybody is
[[nodiscard]] expected<std::shared_ptr<const partition>> make_partition(const scenario& from,
                                                                        std::shared_ptr<const task_stream> tasks,
                                                                        const row_mark_column& marks = {},
                                                                        const enrolled_clients& enrolled = nullptr);

} // namespace mneme
