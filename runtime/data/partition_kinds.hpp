/// partition_kinds: functions that split one task, one for each kind of partition.
#pragma once
#include "runtime/data/partition.hpp"
#include <span>
namespace mneme {

/// Index of a row within its task: `task_rows::train[position]`.
using row_position = std::uint32_t;
inline constexpr std::uint32_t no_client = 0xFFFFFFFF;
/// For each position of a task, the client that owns it, or `no_client`.
using owners = std::vector<std::uint32_t>;

/// One task, as input for the functions that split it.
struct task_split {
  const partition_section& how;
  std::uint32_t clients = 0;
  std::vector<std::vector<row_position>> by_class{}; ///< Positions of each class of the task, ascending.
  std::size_t rows = 0;
  rng_key key{};           ///< Seed, purpose and task; a per-run split uses task 0 for all tasks.
  std::string task_name{}; ///< "task 3", for diagnostics.
};

/// Deals all rows in random order; clients' numbers of rows differ by at most 1.
[[nodiscard]] owners split_iid(const task_split& task);
/// Deals class after class, and starts each class with the client after the one that got the last row. Per class and in
/// total, clients' numbers of rows differ by at most 1.
[[nodiscard]] owners split_balanced(const task_split& task);
/// Sorts rows by class, cuts them into clients * shards_per_client shards of (nearly) equal size, and deals the shards
/// at random.
[[nodiscard]] expected<owners> split_shards(const task_split& task, const std::string& where);
/// Splits each class by shares over clients from a symmetric Dirichlet distribution.
[[nodiscard]] owners split_dirichlet(const task_split& task);
/// Like split_dirichlet(), but a client that already has an equal part of the rows gets none of the next class. The
/// split is drawn again until every client has rows.
[[nodiscard]] expected<owners> split_dirichlet_capped(const task_split& task, const std::string& where);

/// Content of a partition file, indexed by task and position.
struct filed_split {
  std::vector<owners> owned{};
  std::vector<std::vector<std::int32_t>> marks{}; ///< The method's column; empty if the method has none.
  std::int64_t drawn_rows = 0; ///< Number of lines with rows that data.test_share moved to the test split.
};
/// Reads partition.file. Fails with line numbers if a line is invalid, or its row or client is unknown.
[[nodiscard]] expected<filed_split> read_partition_file(const scenario& from, const task_stream& tasks,
                                                        const partition_column_spec& marks);

/// Partitions in which a row can have several owners. Such partitions store nothing and draw the result again in each
/// call.
[[nodiscard]] std::shared_ptr<const partition> make_class_share(const scenario& from,
                                                                std::shared_ptr<const task_stream> tasks);
[[nodiscard]] std::shared_ptr<const partition> make_sampled(const scenario& from,
                                                            std::shared_ptr<const task_stream> tasks);

/// Ascending positions of each class of a task.
[[nodiscard]] std::vector<std::vector<row_position>> positions_by_class(const task_stream& tasks, task_id task);

/// Random key of a task. A per-run split has the same key for all tasks.
[[nodiscard]] rng_key split_key(const scenario& from, purpose purpose_id, task_id task);

} // namespace mneme
